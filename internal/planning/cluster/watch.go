package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Event is a version of an object that a watch saw, or its deletion.
type Event struct {
	Object    *unstructured.Unstructured
	IsDeleted bool
}

// Watch lists the objects of a kind and follows them until ctx ends, as an informer does: it lists
// again where the server has forgotten what was missed. An empty namespace means all. It returns an
// error when the kind can't be listed, and calls listed when it can. see is called by one goroutine.
func (c *Cluster) Watch(ctx context.Context, k Kind, s Selection, listed func(), see func(Event)) error {
	of := c.resource(k, s.Namespace)
	// client-go logs why it tries again, and what it can't read when ctx ends. That is not for the user's screen.
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

// seer hands on what a reflector would keep.
type seer struct {
	see   func(Event)
	known map[types.NamespacedName]*unstructured.Unstructured // what names each object, and no more of it
}

func (s *seer) Add(obj any) error    { return s.pass(obj, false) }
func (s *seer) Update(obj any) error { return s.pass(obj, false) }
func (s *seer) Delete(obj any) error { return s.pass(obj, true) }
func (s *seer) Resync() error        { return nil }

// Replace hands on a new list. What is not in it was deleted while the server could not be watched.
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

// nameOf returns an object without what is not needed to say that it was deleted.
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

// KindsNamed returns the kinds that people call by some names, as kubectl takes them.
func (c *Cluster) KindsNamed(names []string) (out []Kind, err error) {
	for _, name := range names {
		full, group := schema.ParseResourceArg(strings.ToLower(name))
		if full == nil {
			anyVersion := group.WithVersion("")
			full = &anyVersion
		}
		gvk, err := c.mapper.KindFor(*full)
		if err != nil {
			return nil, fmt.Errorf("the server doesn't have a resource type %q%s", name, DidYouMean(name, c.resourceNames()))
		}
		kind, err := c.Kind(gvk)
		if err != nil {
			return nil, err
		}
		out = append(out, kind)
	}
	return out, nil
}
