// Package applier applies intents only if that would change something. It is for controllers that apply the same
// intent again and again, and have the object in a cache.
//
//	a := applier.New(manager, applier.Options{Manager: "my-controller", Force: true})
//	result, err := a.Apply(ctx, dynamicClient.Resource(gvr).Namespace(ns), cached, intent)
//
// The Applier plans the apply on the cached object ([plans.New]), and sends it unless the outcome
// of the plan is Unchanged. It also sends conflicts without a policy, invalid intents, and what can't be planned, so
// that every error is the server's own.
//
// # Conflicts
//
// With Options.Resolve, each conflict of an apply is decided: the field is forced, given up or shared with the owner
// ([plans.Resolve]). The intent that follows is planned and sent instead. A controller that gives a field up does so as
// long as the other manager owns it, and sends no request for it. [Rules] makes a policy by path and owner:
//
//	Resolve: applier.Rules(
//		applier.Rule{Path: fieldpath.Fields("spec", "replicas"), Way: conflicts.GiveUp}, // an autoscaler's
//		applier.Rule{Owner: "kubectl-edit", Way: conflicts.Force},
//	),
//
// A 409 of the server means that the cache was old. If the Resource is a [Getter], the object is read again and its
// conflicts are decided again, at most three times.
//
// # Stale caches
//
// A cached object may be older than the stored one, and then the wrong apply may be skipped:
//
//   - If somebody changed the object and the cache has not seen it yet, an apply that would correct the change is
//     skipped. A controller that watches the object gets the event of the change later, applies again, and corrects it
//     then.
//   - If this Applier changed the object and the cache has not seen it yet, a plan on the cached object would be
//     wrong. So an Applier remembers the resourceVersion of its last write to each object, and sends all applies until
//     the cache has it.
//   - A controller that applies once and does not watch must not skip: it must read the object from the server, or
//     send the apply.
//
// A plan is exact only if it knows what the server does besides merging: its defaults, and what its Go structs of
// built-in types leave out. See [Options].
package applier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// maxTries is how often the object is read again after a conflict.
const maxTries = 3

// Options say how an Applier applies.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners. Resolve is not called then.
	Force bool
	// Resolve decides a conflict. If ok is false for one of them, the intent is sent as it is, and the server responds
	// with the conflicts. So it does if Resolve is nil.
	Resolve func(conflicts.Conflict) (way conflicts.Way, ok bool)
	// Subresource is the one of the FieldManager; empty for the main resource.
	Subresource string
	// Plan says what the server does with a merged object. Its Manager and Force are
	// ignored.
	// For built-in types Semantics should be typed.Canonical(nil), and Defaults true
	// for all types with defaults.
	Plan plans.Options
}

// Stats count what an Applier did.
type Stats struct {
	// Planned are the applies that were planned on a cached object.
	Planned uint64
	// Skipped are the applies that were not sent: the requests that were saved.
	Skipped uint64
	// Applied are the requests that were sent.
	Applied uint64
	// Behind are the applies that were sent without a plan because the cache lacked the last write.
	Behind uint64
	// Resolved are the applies whose conflicts Options.Resolve decided.
	Resolved uint64
	// Conflicts are the applies that ended in a conflict.
	Conflicts uint64
	// Failed are the applies that ended in another error.
	Failed uint64
}

// Object is controller-runtime's client.Object: a Go struct or *unstructured.Unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Result is the result of an apply.
type Result struct {
	// Object is the stored object: the cached one if the apply was skipped, and the server's response otherwise.
	Object Object
	// Skipped is true when no request was sent.
	Skipped bool
	// Plan is the plan of what was sent or skipped; nil if there was none. Its live object is the cached one, or the
	// one that was read again after a conflict.
	Plan *plans.Plan
	// Resolution has the intent that follows from Options.Resolve; nil if there were no conflicts.
	Resolution *plans.Resolution
}

// Applier applies the intents of one manager to objects of one kind. It is safe for
// concurrent use.
type Applier struct {
	options Options

	mu      sync.Mutex
	manager *fieldmanager.FieldManager
	stats   Stats
	// The resourceVersions of the last writes, which the cache may not have yet: those of the last maxWritten names,
	// and of up to as many before them.
	written, before map[types.NamespacedName]string
}

// maxWritten bounds how many names an Applier remembers, whether caches come to have the objects or not.
const maxWritten = 1 << 14

// New returns an Applier. manager must be for the version and subresource of the intents, and have the options of the
// server: which fields it resets, how it converts objects. If manager is nil, every intent is sent without a plan.
func New(manager *fieldmanager.FieldManager, options Options) *Applier {
	options.Plan.Force = options.Force
	return &Applier{manager: manager, options: options, written: map[types.NamespacedName]string{}}
}

// SetFieldManager replaces the FieldManager, for a kind whose schema changed.
func (a *Applier) SetFieldManager(manager *fieldmanager.FieldManager) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.manager = manager
}

func (a *Applier) fieldManager() *fieldmanager.FieldManager {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.manager
}

// Stats returns the numbers so far.
func (a *Applier) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// Apply applies intent to the object of its name, unless that would change nothing in cached, the object of the cache;
// nil if it has none. Apply changes neither. The error is the server's, or that of [plans.Resolve].
func (a *Applier) Apply(
	ctx context.Context, r Resource, cached Object, intent *unstructured.Unstructured,
) (Result, error) {
	if intent == nil {
		return Result{}, errors.New("no intent")
	}
	result, err := a.apply(ctx, r, cached, intent)
	switch {
	case err == nil:
	case apierrors.IsConflict(err):
		a.count(func(s *Stats) { s.Conflicts++ })
	default:
		a.count(func(s *Stats) { s.Failed++ })
	}
	return result, err
}

func (a *Applier) apply(
	ctx context.Context, r Resource, cached Object, intent *unstructured.Unstructured,
) (result Result, err error) {
	if !isNil(cached) && !a.isBehind(cached) {
		if result, err = a.plan(ctx, cached, intent); err != nil {
			return result, err
		}
		if result.Plan != nil {
			result.Skipped = result.Plan.Outcome == plans.Unchanged
			a.count(func(s *Stats) {
				s.Planned++
				if result.Skipped {
					s.Skipped++
				}
			})
		}
	}
	if result.Skipped {
		result.Object = cached
		return result, nil
	}
	for try := 0; ; try++ {
		stored, err := a.send(ctx, r, intent, result.Resolution)
		if err == nil {
			result.Object = stored
			a.wrote(stored)
			return result, nil
		}
		live, again := a.readAgain(ctx, r, intent, err, try)
		if !again {
			return result, err
		}
		next, resolveErr := a.plan(ctx, live, intent)
		switch {
		case resolveErr != nil:
			return result, resolveErr
		case next.Plan == nil || next.Plan.Outcome == plans.Conflict:
			return result, err
		}
		result = next
		if result.Plan.Outcome == plans.Unchanged {
			result.Object = live
			return result, nil
		}
	}
}

// plan plans an intent on an object, and resolves its conflicts if Options.Resolve decides all of them. The plan is nil
// for an intent that can't be planned.
func (a *Applier) plan(ctx context.Context, live runtime.Object, intent *unstructured.Unstructured) (Result, error) {
	manager := a.fieldManager()
	if manager == nil {
		return Result{}, nil
	}
	options := a.options.Plan
	options.Manager = a.options.Manager
	plan, err := plans.New(ctx, manager, live, intent, options)
	if err != nil {
		return Result{}, nil // The server says what is wrong with it.
	}
	if plan.Outcome != plans.Conflict || !a.decidesAll(plan.Conflicts) {
		return Result{Plan: plan}, nil
	}
	resolution, err := plans.Resolve(ctx, manager, live, intent, func(c conflicts.Conflict) conflicts.Way {
		way, _ := a.options.Resolve(c)
		return way
	}, options)
	if err != nil {
		return Result{Plan: plan}, fmt.Errorf("resolve conflicts: %w", err)
	}
	a.count(func(s *Stats) { s.Resolved++ })
	return Result{Plan: resolution.Plan, Resolution: resolution}, nil
}

func (a *Applier) decidesAll(all conflicts.Conflicts) bool {
	if a.options.Resolve == nil {
		return false
	}
	for _, c := range all {
		if _, ok := a.options.Resolve(c); !ok {
			return false
		}
	}
	return true
}

// send sends an intent, or what its conflicts were resolved to.
func (a *Applier) send(
	ctx context.Context, r Resource, intent *unstructured.Unstructured, resolution *plans.Resolution,
) (*unstructured.Unstructured, error) {
	force := a.options.Force
	if resolution != nil {
		intent, force = resolution.Intent, resolution.Force
	}
	a.count(func(s *Stats) { s.Applied++ })
	sent := &unstructured.Unstructured{}
	sent.Object, _ = trees.Copy(intent.Object).(map[string]any)
	return r.Apply(ctx, intent.GetName(), sent,
		metav1.ApplyOptions{FieldManager: a.options.Manager, Force: force}, a.subresources()...)
}

// readAgain reads the object after a conflict. again is false if there is no Options.Resolve, if the object can't be
// read, and after the last try.
func (a *Applier) readAgain(
	ctx context.Context, r Resource, intent *unstructured.Unstructured, cause error, try int,
) (live *unstructured.Unstructured, again bool) {
	getter, canRead := r.(Getter)
	if !canRead || a.options.Resolve == nil || a.options.Force || !apierrors.IsConflict(cause) || try == maxTries {
		return nil, false
	}
	live, err := getter.Get(ctx, intent.GetName(), metav1.GetOptions{}, a.subresources()...)
	return live, err == nil && live != nil
}

func (a *Applier) subresources() []string {
	if a.options.Subresource == "" {
		return nil
	}
	return []string{a.options.Subresource}
}

func (a *Applier) count(f func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.stats)
}

// isNil reports whether obj is nil or a nil pointer.
func isNil(obj Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	return obj == nil || ok && u == nil
}

// keyOf names an object as it is stored: an intent may leave the namespace out.
func keyOf(stored metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: stored.GetNamespace(), Name: stored.GetName()}
}

// wrote remembers the resourceVersion of the last write.
func (a *Applier) wrote(stored *unstructured.Unstructured) {
	if stored == nil || stored.GetResourceVersion() == "" {
		return
	}
	key, version := keyOf(stored), stored.GetResourceVersion()
	a.mu.Lock()
	defer a.mu.Unlock()
	// The responses of concurrent applies may arrive in another order than the writes.
	if order, err := resourceversion.CompareResourceVersion(a.lastWritten(key), version); err == nil && order > 0 {
		return
	}
	if len(a.written) == maxWritten {
		a.before, a.written = a.written, make(map[types.NamespacedName]string, maxWritten)
	}
	a.written[key] = version
}

// lastWritten returns the resourceVersion of the last write of an object; empty if it is not remembered.
func (a *Applier) lastWritten(key types.NamespacedName) string {
	if version, ok := a.written[key]; ok {
		return version
	}
	return a.before[key]
}

// isBehind reports whether cached may be older than the last write. If it is not, the write is forgotten: a cache never
// becomes older.
func (a *Applier) isBehind(cached Object) bool {
	key := keyOf(cached)
	a.mu.Lock()
	defer a.mu.Unlock()
	written := a.lastWritten(key)
	if written == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	if cached.GetResourceVersion() == written || err == nil && order >= 0 {
		delete(a.written, key)
		delete(a.before, key)
		return false
	}
	a.stats.Behind++
	return true
}
