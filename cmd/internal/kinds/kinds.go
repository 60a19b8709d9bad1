// Package kinds knows the Go types of the built-in kinds.
package kinds

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Empty returns an object of a built-in kind before it is created: the zero value of its Go type, with
// its kind. It returns nil for custom resources and other kinds without a Go type in client-go.
func Empty(kind schema.GroupVersionKind) runtime.Object {
	obj, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj
}
