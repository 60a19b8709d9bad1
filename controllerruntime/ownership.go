package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/responses"
	"github.com/tenure-ssa/tenure/ownership/excess"
)

// CheckOwnership reads lists of objects, and returns an [excess.Error] if managers own fields that p does not permit.
// It checks only managers that a permission or rule of p names. Other errors mean that a list could not be read, that
// no object in it has managed fields, or that p or the lists are missing. Call it at the end of a test suite that runs
// on a server. A fake client must return managed fields (WithReturnManagedFields). It stores objects as Go types encode
// them. So the check can't find fields that an operator owns on a server only because its Go type encodes them
// differently from the stored object. A test of an operator checks only this operator:
//
//	p := &policy.Policy{Permissions: []policy.Permission{{
//		Managers: []string{"backups"}, Fields: []string{".metadata.finalizers", ".metadata.labels"},
//	}}}
//	require.NoError(t, controllerruntime.CheckOwnership(ctx, c, p, &backupv1.BackupList{}))
func CheckOwnership(ctx context.Context, c client.Client, p *policy.Policy, lists ...client.ObjectList) error {
	if err := canCheck(p, lists); err != nil {
		return err
	}
	var found excess.Error
	for _, list := range lists {
		objects, tracked := 0, 0
		err := eachObject(ctx, c, list, func(obj client.Object) error {
			objects++
			if len(obj.GetManagedFields()) > 0 {
				tracked++
			}
			fields, err := excess.Find(p, obj)
			found = append(found, fields...)
			return err
		})
		if err != nil {
			return err
		}
		if objects > 0 && tracked == 0 {
			return fmt.Errorf("%T: expected managed fields, and no object has any: a fake client returns them with "+
				"WithReturnManagedFields, and a cache may strip them", list)
		}
	}
	if len(found) > 0 {
		return found
	}
	return nil
}

// canCheck returns an error that says what is missing for a check.
func canCheck(p *policy.Policy, lists []client.ObjectList) error {
	switch {
	case p == nil:
		return errors.New("expected a policy with permissions, got nil")
	case len(lists) == 0:
		return errors.New("expected lists of the kinds to check, got none")
	}
	return nil
}

// eachObject reads a list and visits its objects with their kinds, which typed lists omit.
func eachObject(ctx context.Context, c client.Client, list client.ObjectList, visit func(client.Object) error) error {
	if err := c.List(ctx, list); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		gvk, err := c.GroupVersionKindFor(item)
		if err != nil {
			return err
		}
		item.GetObjectKind().SetGroupVersionKind(gvk)
		return visit(item.(client.Object))
	})
}

// OwnershipWatch records the fields that managers gained although the policy does not permit them to own these fields.
// It also records the previous values of the fields. It is safe for concurrent use.
type OwnershipWatch struct {
	client client.WithWatch
	policy *policy.Policy
	lists  []client.ObjectList

	mu      sync.Mutex
	live    map[responses.Key]client.Object // last seen state of each object
	seen    map[responses.Key]string        // last seen resourceVersion of each object, including deleted objects
	changed chan struct{}                   // closed at the next event
	found   excess.Error
	err     error
}

func keyOfObject(obj client.Object) responses.Key {
	return keyOf(obj.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(obj))
}

// WatchOwnership watches lists of objects until ctx ends. Therefore [OwnershipWatch.Check] knows the previous value of
// each field, and also the fields of deleted objects. Call WatchOwnership at the start of the test suite:
//
//	w, err := controllerruntime.WatchOwnership(ctx, c, p, &backupv1.BackupList{})
//	require.NoError(t, err)
//	... // the tests
//	require.NoError(t, w.Check(ctx))
//
// WatchOwnership ignores fields that managers already own when it is called.
func WatchOwnership(
	ctx context.Context, c client.WithWatch, p *policy.Policy, lists ...client.ObjectList,
) (*OwnershipWatch, error) {
	if err := canCheck(p, lists); err != nil {
		return nil, err
	}
	w := &OwnershipWatch{
		client: c, policy: p, lists: lists, changed: make(chan struct{}),
		live: map[responses.Key]client.Object{}, seen: map[responses.Key]string{},
	}
	for _, list := range lists {
		list := list.DeepCopyObject().(client.ObjectList)
		err := eachObject(ctx, c, list, func(obj client.Object) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.live[keyOfObject(obj)], w.seen[keyOfObject(obj)] = obj, obj.GetResourceVersion()
			return nil
		})
		if err != nil {
			return nil, err
		}
		events, err := w.watch(ctx, list, list.GetResourceVersion())
		if err != nil {
			return nil, err
		}
		go w.follow(ctx, list, events)
	}
	return w, nil
}

func (w *OwnershipWatch) watch(ctx context.Context, list client.ObjectList, from string) (watch.Interface, error) {
	return w.client.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
}

// follow reads the events of a list, and starts a new watch when the server ends one.
func (w *OwnershipWatch) follow(ctx context.Context, list client.ObjectList, events watch.Interface) {
	defer func() { events.Stop() }()
	last := list.GetResourceVersion()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-events.ResultChan():
			var err error
			if ok {
				last, err = w.see(event)
			} else {
				var next watch.Interface
				if next, err = w.watch(ctx, list, last); err == nil {
					events = next
				}
			}
			if err != nil {
				w.mu.Lock()
				w.err = fmt.Errorf("watch %T: %w", list, err)
				close(w.changed)
				w.changed = make(chan struct{})
				w.mu.Unlock()
				return
			}
		}
	}
}

// see checks the changes of an event, and returns its resourceVersion.
func (w *OwnershipWatch) see(event watch.Event) (version string, err error) {
	obj, ok := event.Object.(client.Object)
	if event.Type == watch.Error || !ok {
		return "", apierrors.FromObject(event.Object)
	}
	gvk, err := w.client.GroupVersionKindFor(obj)
	if err != nil {
		return "", err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	key := keyOfObject(obj)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event.Type {
	case watch.Deleted:
		delete(w.live, key)
	case watch.Added, watch.Modified:
		var before runtime.Object
		if live, ok := w.live[key]; ok {
			before = live
		}
		taken, err := excess.FindTaken(w.policy, before, obj)
		if err != nil {
			return "", err
		}
		w.found = append(w.found, taken...)
		w.live[key] = obj
	}
	w.seen[key] = obj.GetResourceVersion()
	close(w.changed)
	w.changed = make(chan struct{})
	return obj.GetResourceVersion(), nil
}

// Check returns an [excess.Error] if managers gained fields that the policy does not permit them to own, even if they
// have lost them since. It waits for the events of all existing objects.
func (w *OwnershipWatch) Check(ctx context.Context) error {
	for _, list := range w.lists {
		err := eachObject(ctx, w.client, list.DeepCopyObject().(client.ObjectList), func(obj client.Object) error {
			return w.waitFor(ctx, obj)
		})
		if err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.found) > 0 {
		return slices.Clone(w.found)
	}
	return nil
}

// waitFor waits until a version of an object, or a later version, was seen.
func (w *OwnershipWatch) waitFor(ctx context.Context, obj client.Object) error {
	for {
		w.mu.Lock()
		version, seen := w.seen[keyOfObject(obj)]
		changed, err := w.changed, w.err
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if seen {
			order, err := resourceversion.CompareResourceVersion(version, obj.GetResourceVersion())
			if err != nil || order >= 0 {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
