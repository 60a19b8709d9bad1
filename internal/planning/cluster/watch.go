package cluster

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Event is a version of an object in a watch, or its deletion.
type Event struct {
	Object    *unstructured.Unstructured
	IsDeleted bool
}

// Watch lists and watches the objects of a kind until ctx is done, as an informer does: if the server has compacted the
// needed revision, it lists again. An empty namespace means all namespaces. Watch returns an error if the kind can't be
// listed, and otherwise calls listed after the first list. It calls see from one goroutine.
func (c *Cluster) Watch(ctx context.Context, k Kind, s Selection, listed func(), see func(Event)) error {
	of := c.resource(k, s.Namespace)
	// client-go would log retries, and reads that fail because ctx is done. The user does not need to see these
	// messages.
	ctx = klog.NewContext(ctx, logr.Discard())
	_, err := of.List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: s.Selector, FieldSelector: s.Fields})
	if err != nil {
		return fmt.Errorf("%s: %w", k.Resource.GroupResource(), err)
	}
	listed()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = s.Selector, s.Fields
			return of.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = s.Selector, s.Fields
			return of.Watch(ctx, o)
		},
	}
	named := cache.ReflectorOptions{Name: k.Resource.String()}
	cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, &seer{see: see}, named).RunWithContext(ctx)
	return nil
}

// seer is a reflector's store. It passes objects to the function see and does not keep them.
type seer struct {
	see   func(Event)
	known map[types.NamespacedName]*unstructured.Unstructured // only the identifying fields of each object
}

func (s *seer) Add(obj any) error    { return s.pass(obj, false) }
func (s *seer) Update(obj any) error { return s.pass(obj, false) }
func (s *seer) Delete(obj any) error { return s.pass(obj, true) }
func (s *seer) Resync() error        { return nil }

// Replace passes the objects of a new list to see. Known objects that the list lacks were deleted while the watch was
// interrupted.
func (s *seer) Replace(list []any, _ string) error {
	before := s.known
	s.known = map[types.NamespacedName]*unstructured.Unstructured{}
	for _, obj := range list {
		if err := s.pass(obj, false); err != nil {
			return err
		}
	}
	for name, u := range before {
		if s.known[name] == nil {
			s.see(Event{Object: u, IsDeleted: true})
		}
	}
	return nil
}

// nameOf returns an object with only the fields that an event for its deletion needs.
func nameOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	return out
}

func (s *seer) pass(obj any, isDeleted bool) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("watch: expected an unstructured object, got %T", obj)
	}
	name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	if isDeleted {
		delete(s.known, name)
	} else {
		if s.known == nil {
			s.known = map[types.NamespacedName]*unstructured.Unstructured{}
		}
		s.known[name] = nameOf(u)
	}
	s.see(Event{Object: u, IsDeleted: isDeleted})
	return nil
}
