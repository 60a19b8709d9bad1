package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// createNamespaces creates the namespaces that every cluster has.
func (s *Server) createNamespaces(ctx context.Context) error {
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		n := &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: s.options.NewUID(), CreationTimestamp: metav1.NewTime(s.options.Now()).Rfc3339Copy(),
				Labels: map[string]string{corev1.LabelMetadataName: name},
			},
			Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		}
		data, err := json.Marshal(n)
		if err != nil {
			return err
		}
		var there *storage.ConflictError
		if _, err := s.store.Put(ctx, resources.PrefixOf("", "namespaces")+name, data, 0); err != nil &&
			!errors.As(err, &there) {
			return err
		}
	}
	return nil
}

// namespaceController is the user that deletes the contents of Namespaces in a cluster, as
// admission plugins see it.
var namespaceController = serviceaccount.UserInfo("kube-system", "namespace-controller", "")

// finalizeNamespace deletes the contents of a Namespace that is being deleted, and then
// removes its finalizer. It returns an error, and must be called again, while objects remain.
func (s *Server) finalizeNamespace(ctx context.Context, name string) error {
	namespaces := s.tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	obj, err := s.verbs.Read(ctx, namespaces, name)
	if err != nil || obj == nil || obj.GetDeletionTimestamp() == nil {
		return err
	}
	if err := s.emptyNamespace(apirequest.WithUser(ctx, namespaceController), name); err != nil {
		return err
	}
	_, err = s.verbs.Update(ctx, namespaces, "finalize", name, "kube-apiserver", func(obj resources.Object) error {
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

// emptyNamespace deletes the contents of a namespace.
func (s *Server) emptyNamespace(ctx context.Context, name string) error {
	var errs []error
	for _, r := range s.tables.Table().Stored() {
		if !r.Namespaced {
			continue
		}
		page, err := s.store.List(ctx, r.KeysIn(name), storage.ListOptions{})
		if err != nil {
			return err
		}
		errs = append(errs, s.verbs.RemoveAll(ctx, r, page.Records))
	}
	return errors.Join(errs...)
}
