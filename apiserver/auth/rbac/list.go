package rbac

import (
	"context"
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
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

// A list contains all objects of a resource, by namespace and name. It reads all objects once. Later it reads only
// written objects again. If this server writes an object, the list reads the object before the response. If another
// server writes an object, the list reads the object when the watch reports the write.
type list[T metav1.Object] struct {
	ctx     context.Context
	storage opened
	kind    string

	refreshing sync.Mutex // held while an object is read and kept, so that an older read does not replace a newer one
	lock       sync.Mutex
	known      map[string]map[string]T // nil: not read yet. Its maps are immutable; a change replaces them
	changes    int                     // counts changes while known is nil
	stop       func()                  // ends the watch
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

// forget drops the known objects, so that the next get reads them.
func (l *list[T]) forget() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.known != nil {
		l.stop()
	}
	l.known = nil
	l.changes++
}

// version returns the resourceVersion of an object, or "" if it does not exist, and whether the objects are known.
func (l *list[T]) version(namespace, name string) (version string, isKnown bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if object, ok := l.known[namespace][name]; ok {
		version = object.GetResourceVersion()
	}
	return version, l.known != nil
}

// maxRefresh is the timeout to read an object again.
const maxRefresh = 10 * time.Second

// refresh reads an object again after it was written or deleted.
func (l *list[T]) refresh(ctx context.Context, namespace, name string) {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	if _, isKnown := l.version(namespace, name); !isKnown {
		l.forget()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxRefresh)
	defer cancel()
	object, err := l.readOne(ctx, namespace, name)
	if err != nil && !storage.IsNotFound(err) {
		l.forget()
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.known == nil {
		l.changes++
		return
	}
	in := maps.Clone(l.known[namespace])
	if err != nil {
		delete(in, name)
	} else {
		in = with(in, name, object)
	}
	l.known = with(maps.Clone(l.known), namespace, in)
}

// with adds an entry to a map, and returns the map. If m is nil, it creates the map.
func with[V any](m map[string]V, name string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

func (l *list[T]) readOne(ctx context.Context, namespace, name string) (out T, err error) {
	object, err := legacyscheme.Scheme.New(rbac.SchemeGroupVersion.WithKind(l.kind))
	if err != nil {
		return out, err
	}
	key := path.Join(l.storage.prefix, namespace, name)
	if err := l.storage.Get(ctx, key, storage.GetOptions{}, object); err != nil {
		return out, err
	}
	object, err = legacyscheme.Scheme.ConvertToVersion(object, rbacv1.SchemeGroupVersion)
	if err != nil {
		return out, err
	}
	return object.(T), nil
}

// get returns the objects. Callers must not change them.
func (l *list[T]) get(ctx context.Context) (map[string]map[string]T, error) {
	l.lock.Lock()
	known, changes := l.known, l.changes
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
	if l.changes == changes && l.known == nil && l.watch(revision) {
		l.known = known
	}
	return known, nil
}

// read reads the objects, and returns the revision of the read.
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
		out[o.GetNamespace()] = with(out[o.GetNamespace()], o.GetName(), o)
	}
	m, err := meta.ListAccessor(all)
	if err != nil {
		return nil, "", err
	}
	return out, m.GetResourceVersion(), nil
}

// watch refreshes each object that this or another server writes, until forget is called. It returns false if the watch
// can't start.
func (l *list[T]) watch(revision string) bool {
	ctx, cancel := context.WithCancel(l.ctx)
	w, err := l.storage.Watch(ctx, strings.TrimSuffix(l.storage.prefix, "/")+"/", storage.ListOptions{
		Recursive: true, ResourceVersion: revision, Predicate: storage.Everything,
	})
	if err != nil {
		cancel()
		return false
	}
	l.stop = cancel
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			if shared, ok := event.Object.(runtime.CacheableObject); ok {
				event.Object = shared.GetObject()
			}
			object, err := meta.Accessor(event.Object)
			if err != nil || event.Type == watch.Error {
				break
			}
			namespace, name := object.GetNamespace(), object.GetName()
			known, _ := l.version(namespace, name)
			isDone := known == object.GetResourceVersion() || known == "" && event.Type == watch.Deleted
			if !isDone {
				l.refresh(ctx, namespace, name)
			}
		}
		if ctx.Err() == nil {
			l.forget()
		}
	}()
	return true
}
