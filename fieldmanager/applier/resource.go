package applier

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Resource applies objects of one kind in one namespace. dynamic.ResourceInterface of client-go is one; [FromClient]
// makes one of controller-runtime's client.
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

// Client is what controller-runtime's client.Client has, O being its
// client.ApplyOption.
type Client[O any] interface {
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...O) error
}

// FromClient returns a Resource of controller-runtime's client, which finds the resource of an object by itself:
//
//	applier.FromClient(c, client.ApplyConfigurationFromUnstructured,
//		func(o metav1.ApplyOptions) []client.ApplyOption {
//			return []client.ApplyOption{&client.ApplyOptions{FieldManager: o.FieldManager, Force: &o.Force, DryRun: o.DryRun}}
//		})
//
// wrap returns an intent as the client's type, into which the client decodes the response. An apply to a subresource is
// an error.
func FromClient[O any](c Client[O], wrap func(*unstructured.Unstructured) runtime.ApplyConfiguration,
	options func(metav1.ApplyOptions) []O) Resource {
	return clientResource[O]{c, wrap, options}
}

type clientResource[O any] struct {
	client  Client[O]
	wrap    func(*unstructured.Unstructured) runtime.ApplyConfiguration
	options func(metav1.ApplyOptions) []O
}

var errSubresource = errors.New("a controller-runtime client applies to subresources through another client")

func (r clientResource[O]) Apply(
	ctx context.Context,
	_ string,
	obj *unstructured.Unstructured,
	options metav1.ApplyOptions,
	subresources ...string,
) (*unstructured.Unstructured, error) {
	if len(subresources) > 0 {
		return nil, errSubresource
	}
	if err := r.client.Apply(ctx, r.wrap(obj), r.options(options)...); err != nil {
		return nil, err
	}
	return obj, nil
}
