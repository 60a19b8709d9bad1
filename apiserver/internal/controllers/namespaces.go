package controllers

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// namespaceController is the user that admission plugins see when the contents of Namespaces are deleted. The namespace
// controller of a cluster is the same user.
var namespaceController = serviceaccount.UserInfo("kube-system", "namespace-controller", "")

// finalizeNamespace deletes the contents of a Namespace that is being deleted, and then removes its finalizer. While
// objects remain, it returns an error and must be called again.
func (c *Controllers) finalizeNamespace(ctx context.Context, name string) error {
	namespaces := c.namespaces()
	obj, err := namespaces.Get(ctx, "", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || obj.(*corev1.Namespace).DeletionTimestamp == nil {
		return err
	}
	if !c.options.KeepContents {
		if err := c.emptyNamespace(apirequest.WithUser(ctx, namespaceController), name); err != nil {
			return err
		}
	}
	if len(obj.(*corev1.Namespace).Spec.Finalizers) == 0 {
		return nil // the finalizers in metadata delay the deletion
	}
	_, err = namespaces.Modify(ctx, "", name, "finalize", "kube-apiserver", func(obj runtime.Object) error {
		n := obj.(*corev1.Namespace)
		n.Spec.Finalizers = slices.DeleteFunc(n.Spec.Finalizers, func(f corev1.FinalizerName) bool {
			return f == corev1.FinalizerKubernetes
		})
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// emptyNamespace deletes the contents of a Namespace. It calls validating admission for the deletes.
func (c *Controllers) emptyNamespace(ctx context.Context, name string) error {
	var errs []error
	for _, r := range c.options.Tables.Table().Stored() {
		if !r.Namespaced {
			continue
		}
		e, err := r.Endpoint("")
		if err != nil {
			return err
		}
		a := admission.NewAttributesRecord(nil, nil, r.GVK(), name, "", r.GVR(), "", admission.Delete,
			&metav1.DeleteOptions{}, false, namespaceController)
		errs = append(errs, r.RemoveAll(ctx, name, rest.AdmissionToValidateObjectDeleteFunc(c.options.Admission, a, e.Scope)))
	}
	return errors.Join(errs...)
}

// namespaces returns the resource of Namespaces.
func (c *Controllers) namespaces() *resources.Resource {
	return c.options.Tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
}

// handleNamespaceWrite continues the deletion of a Namespace after a write to the Namespace.
func (c *Controllers) handleNamespaceWrite(ctx context.Context, name string) {
	switch {
	case c.options.External:
	case c.options.KeepContents:
		_ = c.finalizeNamespace(ctx, name) // with KeepContents, it only removes the finalizer
	default:
		c.queue.Add(task{taskFinalizeNamespace, name})
	}
}

// emptiesNamespaces reports whether the server deletes the contents of deleted Namespaces.
func (c *Controllers) emptiesNamespaces() bool {
	return !c.options.KeepContents && !c.options.External
}

// resumeNamespaces continues the deletion of all Namespaces that are being deleted: another server may have begun it.
func (c *Controllers) resumeNamespaces(ctx context.Context) error {
	list, err := c.namespaces().Objects(ctx, "")
	for _, obj := range list {
		if n := obj.(*corev1.Namespace); n.DeletionTimestamp != nil {
			c.queue.Add(task{taskFinalizeNamespace, n.Name})
		}
	}
	return err
}
