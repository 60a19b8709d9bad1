package rbac

import (
	"context"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/rbac"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	stores "github.com/tenure-ssa/tenure/apiserver/storage"
)

// An opener opens the storages of the RBAC objects.
type opener struct {
	ctx    context.Context
	store  stores.Store
	byKind map[string]opened
	err    error
}

type opened struct {
	storage.Interface
	prefix string
}

// A list is all objects of a resource, by namespace and name. They are read again after one was written.
type list[T metav1.Object] struct {
	ctx     context.Context
	storage opened
	kind    string

	lock   sync.Mutex
	known  map[string]map[string]T // nil: to be read
	writes int
}

// open opens the storage of a resource.
func open[T metav1.Object](o *opener, plural, kind string) *list[T] {
	internal := rbac.SchemeGroupVersion
	create := func(kind string) func() runtime.Object {
		return func() runtime.Object {
			obj, err := legacyscheme.Scheme.New(internal.WithKind(kind))
			if err != nil {
				panic("rbac: bug: " + err.Error()) // the package imports the kinds
			}
			return obj
		}
	}
	resource := schema.GroupResource{Group: rbac.GroupName, Resource: plural}
	config := &storagebackend.ConfigForResource{GroupResource: resource}
	config.Codec = builtin.StorageCodec(legacyscheme.Scheme, legacyscheme.Scheme, rbacv1.SchemeGroupVersion, internal)
	s := opened{prefix: "/" + rbac.GroupName + "/" + plural}
	var err error
	if s.Interface, _, err = o.store.Open(config, s.prefix, create(kind), create(kind+"List")); err != nil {
		o.err = err
	}
	if o.byKind == nil {
		o.byKind = map[string]opened{}
	}
	o.byKind[kind] = s
	return &list[T]{ctx: o.ctx, storage: s, kind: kind}
}

// createOne creates an object, unless it exists.
func (o *opener) createOne(ctx context.Context, obj *unstructured.Unstructured) error {
	s := o.byKind[obj.GetKind()]
	key := s.prefix + "/"
	if namespace := obj.GetNamespace(); namespace != "" {
		key += namespace + "/"
	}
	versioned, err := legacyscheme.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, versioned); err != nil {
		return err
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(versioned, rbac.SchemeGroupVersion)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(internal)
	if err != nil {
		return err
	}
	rest.FillObjectMetaSystemFields(m)
	if err := s.Create(ctx, key+obj.GetName(), internal, nil, 0); err != nil && !storage.IsExist(err) {
		return err
	}
	return nil
}

// change makes the next get read the objects.
func (l *list[T]) change() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.known = nil
	l.writes++
}

// get returns the objects. Callers must not change them.
func (l *list[T]) get(ctx context.Context) (map[string]map[string]T, error) {
	l.lock.Lock()
	known, writes := l.known, l.writes
	l.lock.Unlock()
	if known != nil {
		return known, nil
	}
	known, revision, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.writes == writes && l.known == nil {
		if w := l.watch(revision); w {
			l.known = known
		}
	}
	return known, nil
}

// read reads the objects, and returns the revision at which it did.
func (l *list[T]) read(ctx context.Context) (map[string]map[string]T, string, error) {
	all, err := legacyscheme.Scheme.New(rbac.SchemeGroupVersion.WithKind(l.kind + "List"))
	if err != nil {
		return nil, "", err
	}
	options := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	if err := l.storage.GetList(ctx, l.storage.prefix+"/", options, all); err != nil {
		return nil, "", err
	}
	out := map[string]map[string]T{}
	items, err := meta.ExtractList(all)
	if err != nil {
		return nil, "", err
	}
	for _, item := range items {
		obj, err := legacyscheme.Scheme.ConvertToVersion(item, rbacv1.SchemeGroupVersion)
		if err != nil {
			return nil, "", err
		}
		o := obj.(T)
		if out[o.GetNamespace()] == nil {
			out[o.GetNamespace()] = map[string]T{}
		}
		out[o.GetNamespace()][o.GetName()] = o
	}
	m, err := meta.ListAccessor(all)
	if err != nil {
		return nil, "", err
	}
	return out, m.GetResourceVersion(), nil
}

// watch calls change after the next write, by this server or another. It returns false if there is no watch.
func (l *list[T]) watch(revision string) bool {
	ctx, cancel := context.WithCancel(l.ctx)
	w, err := l.storage.Watch(ctx, strings.TrimSuffix(l.storage.prefix, "/")+"/", storage.ListOptions{
		Recursive: true, ResourceVersion: revision, Predicate: storage.Everything,
	})
	if err != nil {
		cancel()
		return false
	}
	go func() {
		defer cancel()
		<-w.ResultChan() // an event, an error, or the end
		w.Stop()
		l.change()
	}()
	return true
}
