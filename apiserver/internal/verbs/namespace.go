package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// checkNamespace rejects a create in a namespace that does not exist or is being deleted.
func (c *Call) checkNamespace(ctx context.Context, obj resources.Object) error {
	name := obj.GetNamespace()
	if !c.Resource.Namespaced || name == "" || c.DisableNamespaceLifecycle {
		return nil
	}
	record, _, err := c.Store.Get(ctx, resources.PrefixOf("", "namespaces")+name, 0)
	if err != nil {
		return err
	}
	if record == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	var namespace struct {
		Metadata struct {
			DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(record.Value, &namespace); err != nil {
		return fmt.Errorf("%s: %w", record.Key, err)
	}
	if namespace.Metadata.DeletionTimestamp == nil {
		return nil
	}
	refused := apierrors.NewForbidden(c.Resource.GroupResource(), obj.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated",
			name), Field: "metadata.namespace",
	})
	return refused
}

// undeletableNamespaces are the namespaces that can't be deleted.
var undeletableNamespaces = map[string]bool{"default": true, "kube-system": true, "kube-public": true}

// DeleteNamespace is the Deleter of Namespaces: spec.finalizers keeps them until their
// contents are deleted.
func DeleteNamespace(obj resources.Object, now metav1.Time) (stays bool, err error) {
	n, ok := obj.(*corev1.Namespace)
	if !ok {
		return false, fmt.Errorf("expected a Namespace, got a %T", obj)
	}
	if undeletableNamespaces[n.Name] {
		return false, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, n.Name,
			errors.New("this namespace may not be deleted"))
	}
	if n.DeletionTimestamp == nil {
		n.DeletionTimestamp = &now
	}
	n.Status.Phase = corev1.NamespaceTerminating
	return len(n.Spec.Finalizers) > 0 || len(n.Finalizers) > 0, nil
}

// DeleteNamespaceOnly is the Deleter of namespaces whose deletion deletes nothing in them.
// Only finalizers in the metadata keep one.
func DeleteNamespaceOnly(obj resources.Object, now metav1.Time) (stays bool, err error) {
	n, ok := obj.(*corev1.Namespace)
	if !ok {
		return false, fmt.Errorf("expected a Namespace, got a %T", obj)
	}
	if n.DeletionTimestamp == nil {
		n.DeletionTimestamp = &now
	}
	n.Spec.Finalizers = nil
	return len(n.Finalizers) > 0, nil
}

// isDeletionComplete reports whether an object that is being deleted and has no
// metadata.finalizers can be removed: a Namespace must be empty, other objects must have no
// grace period.
func (c *Call) isDeletionComplete(obj resources.Object) bool {
	if n, ok := obj.(*corev1.Namespace); ok {
		return len(n.Spec.Finalizers) == 0
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
