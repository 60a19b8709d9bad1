package applier

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Resource applies objects of one kind in one namespace. dynamic.ResourceInterface of client-go is one. For
// controller-runtime's client, compat/controllerruntime has an Applier.
type Resource interface {
	// Apply sends obj, an intent, and returns the object as it is stored then.
	Apply(ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions,
		subresources ...string) (*unstructured.Unstructured, error)
}

// Getter is a Resource that reads objects from the server and not from a cache. dynamic.ResourceInterface of client-go
// is one. Without a Getter, only conflicts with the cached object are resolved.
type Getter interface {
	Resource
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (
		*unstructured.Unstructured, error)
}
