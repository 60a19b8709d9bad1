package plugins

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// live is an Indexer for an informer without a cache. It reads the storage each time, so that plugins see all objects
// that were written before their request. Listers use only three of its methods.
type live struct {
	cache.Indexer // nil
	resource      *resources.Resource
}

// GetByKey returns an object by its key: "name" or "namespace/name".
func (l *live) GetByKey(key string) (any, bool, error) {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "", key
	}
	if name == "" {
		return nil, false, nil
	}
	obj, err := l.resource.Get(context.Background(), namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return obj, err == nil, err
}

// List returns all objects.
func (l *live) List() []any { return l.in("") }

// Index returns the objects that are in the same namespace as the object that is passed as like.
func (l *live) Index(_ string, like any) ([]any, error) {
	o, err := meta.Accessor(like)
	if err != nil {
		return nil, err
	}
	return l.in(o.GetNamespace()), nil
}

// in returns the objects in a namespace. If the storage fails, it returns no objects, because an Indexer can't return
// an error.
func (l *live) in(namespace string) (out []any) {
	list, _ := l.resource.Objects(context.Background(), namespace)
	for _, obj := range list {
		out = append(out, obj)
	}
	return out
}

// params lists the params of policies in a namespace. It implements cache.GenericLister and GenericNamespaceLister.
type params struct {
	resource  *resources.Resource
	namespace string
}

func (p *params) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return &params{p.resource, namespace}
}

func (p *params) Get(name string) (runtime.Object, error) {
	obj, err := p.resource.Get(context.Background(), p.namespace, name)
	return withoutKind(obj), err
}

func (p *params) List(selector labels.Selector) (out []runtime.Object, err error) {
	list, err := p.resource.Objects(context.Background(), p.namespace)
	for _, obj := range list {
		if o, err := meta.Accessor(obj); err == nil && selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, withoutKind(obj))
		}
	}
	return out, err
}

// withoutKind returns an object as informers return it: a Go struct without apiVersion and kind.
func withoutKind(obj runtime.Object) runtime.Object {
	if _, ok := obj.(runtime.Unstructured); !ok && obj != nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// paramInformer reads the params of policies.
type paramInformer struct {
	resource *resources.Resource
	synced   *informer // reports that the informer has synced
}

func (i *paramInformer) Informer() cache.SharedIndexInformer { return i.synced }

func (i *paramInformer) Lister() cache.GenericLister { return &params{i.resource, ""} }
