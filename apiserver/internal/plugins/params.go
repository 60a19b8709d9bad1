package plugins

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// paramInformer reads the params of policies from the store.
type paramInformer struct {
	plugins  *Plugins
	resource *resources.Resource
	synced   *informer // tells that it has synced
}

func (i *paramInformer) Informer() cache.SharedIndexInformer { return i.synced }

func (i *paramInformer) Lister() cache.GenericLister { return &paramLister{i, ""} }

// paramLister lists params in a namespace.
type paramLister struct {
	informer  *paramInformer
	namespace string
}

func (l *paramLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return &paramLister{l.informer, namespace}
}

func (l *paramLister) Get(name string) (runtime.Object, error) {
	r := l.informer.resource
	key := r.Key(l.namespace, name)
	if err := storage.CheckKey(key); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	record, _, err := l.informer.plugins.options.Store.Get(context.Background(), key, 0)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, apierrors.NewNotFound(r.GroupResource(), name)
	}
	return l.decode(record)
}

func (l *paramLister) List(selector labels.Selector) ([]runtime.Object, error) {
	page, err := l.informer.plugins.options.Store.List(context.Background(), l.informer.resource.KeysIn(l.namespace),
		storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for i := range page.Records {
		obj, err := l.decode(&page.Records[i])
		if err != nil {
			return nil, err
		}
		if selector.Matches(labels.Set(obj.GetLabels())) {
			out = append(out, obj)
		}
	}
	return out, nil
}

// decode decodes a param as kube-apiserver's informers do: a Go struct has no apiVersion and
// kind.
func (l *paramLister) decode(record *storage.Record) (resources.Object, error) {
	obj, err := l.informer.plugins.decode(l.informer.resource, record)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, nil
}
