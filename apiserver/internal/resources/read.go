package resources

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
)

// The server itself reads like a client with all permissions.

// Get returns an object at the version of the resource.
func (r *Resource) Get(ctx context.Context, namespace, name string) (runtime.Object, error) {
	e, err := r.Endpoint("")
	if err != nil {
		return nil, err
	}
	getter, ok := e.Storage.(rest.Getter)
	if !ok {
		return nil, fmt.Errorf("%s: expected a resource that can be read", r.GroupResource())
	}
	obj, err := getter.Get(r.Context(ctx, "get", namespace), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return e.Scope.Convertor.ConvertToVersion(obj, r.GroupVersion())
}

// Objects returns the objects in a namespace, or in all namespaces if namespace is empty, at the version of the
// resource.
func (r *Resource) Objects(ctx context.Context, namespace string) (out []runtime.Object, err error) {
	err = r.EachObject(ctx, namespace, func(obj runtime.Object) { out = append(out, obj) })
	return out, err
}

// pageSize is how many objects EachObject reads at a time. It is small because objects of some kinds are large.
const pageSize = 50

// EachObject calls f for each object in a namespace, or in all namespaces if namespace is empty, at the version of the
// resource.
func (r *Resource) EachObject(ctx context.Context, namespace string, f func(runtime.Object)) error {
	e, err := r.Endpoint("")
	if err != nil {
		return err
	}
	lister, ok := e.Storage.(rest.Lister)
	if !ok {
		return fmt.Errorf("%s: expected a resource that can be listed", r.GroupResource())
	}
	for options := (internalversion.ListOptions{Limit: pageSize}); ; {
		list, err := lister.List(r.Context(ctx, "list", namespace), &options)
		if err != nil {
			return err
		}
		page, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(obj runtime.Object) error {
			obj, err := e.Scope.Convertor.ConvertToVersion(obj, r.GroupVersion())
			if err == nil {
				f(obj)
			}
			return err
		})
		if options.Continue = page.GetContinue(); err != nil || options.Continue == "" {
			return err
		}
	}
}

// Watch watches the objects in all namespaces, from the current revision on. The objects are at the hub version.
func (r *Resource) Watch(ctx context.Context) (watch.Interface, error) {
	e, err := r.Endpoint("")
	if err != nil {
		return nil, err
	}
	lister, canList := e.Storage.(rest.Lister)
	watcher, canWatch := e.Storage.(rest.Watcher)
	if !canList || !canWatch {
		return nil, fmt.Errorf("%s: expected a resource that can be watched", r.GroupResource())
	}
	list, err := lister.List(r.Context(ctx, "list", ""), &internalversion.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	l, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	return watcher.Watch(r.Context(ctx, "watch", ""), &internalversion.ListOptions{
		Watch: true, ResourceVersion: l.GetResourceVersion(),
	})
}
