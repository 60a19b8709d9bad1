// Package applier applies intents unless the server is known to do nothing with them. It is for controllers that apply
// the same intent again and again, and have the object in a cache.
//
//	a := applier.New(manager, applier.Options{Manager: "my-controller", Force: true})
//	result, err := a.Apply(ctx, dynamicClient.Resource(gvr).Namespace(ns), cached, intent)
//
// An apply is skipped only if the server itself responded to the same intent with the same object before. So the first
// apply after a change of either is sent, and one more, to which the server responds with the object as it is; then
// none is. An apply is planned ([plans.New]) only if its conflicts have to be decided, and all errors are the server's.
//
// # Conflicts
//
// With Options.Resolve, each conflict of an apply is decided: the field is forced, given up or shared with the owner
// ([plans.Resolve]). The intent that follows is planned and sent instead. A controller that gives a field up does so as
// long as the other manager owns it, and sends no request for it. Package policy decides by fields and owners, in Go or
// by a file:
//
//	p := &policy.Policy{Rules: []policy.Rule{
//		{Fields: []string{".spec.replicas"}, Decision: conflicts.GiveUp, Reason: "an autoscaler's"},
//		{Managers: []string{"kubectl-*"}, Decision: conflicts.Force},
//	}}
//	applier.Options{Manager: "my-controller", Resolve: p.Resolve}
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
//   - If this process changed the object and the cache has not seen it yet, the apply is sent.
//   - A controller that applies once and does not watch must not skip: it must read the object from the server, or
//     send the apply.
package applier

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/responses"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Options say how an Applier applies.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners. Resolve is not called then.
	Force bool
	// Resolve decides the conflicts of an apply, and gets the metadata of live: policy.Policy.Resolve does. It
	// returns a decision for each. If one is conflicts.Refuse, or Resolve nil, the intent is sent as it is, and the
	// server responds with the conflicts.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// Subresource is the one of the FieldManager; empty for the main resource.
	Subresource string
	// Plan says what the server does with a merged object: strategy.Strategy.Plan has it. Its Manager and Force are
	// ignored.
	Plan plans.Options
	// Definition identifies the definition of the kind, and what else the server's responses depend on, such as what
	// admits its objects. It is comparable, and nil while that is not known. Without the function, kinds change with
	// [Applier.SetFieldManager] only.
	Definition func(context.Context) any
	// IsStoredAsStruct says that the server stores the kind as a Go struct, as those that are built in.
	IsStoredAsStruct bool
}

// Stats count what an Applier did.
type Stats struct {
	// Skipped are the applies that were not sent.
	Skipped uint64
	// Sent are the requests to apply. An apply whose conflicts are decided again is several.
	Sent uint64
	// Resolved are the applies whose conflicts Options.Resolve decided.
	Resolved uint64
	// Conflicts are the applies that ended in a conflict.
	Conflicts uint64
	// Failed are the applies that ended in another error.
	Failed uint64
}

// Object is controller-runtime's client.Object: a Go struct or *unstructured.Unstructured.
type Object = responses.Object

// Result is the result of an apply.
type Result struct {
	// Object is the stored object: the cached one if the apply was skipped, and the server's response otherwise.
	Object Object
	// Skipped is true when no request was sent.
	Skipped bool
	// Plan is the plan of what was sent, if Options.Resolve needed one. Its live object is the cached one, or the one that
	// was read again after a conflict.
	Plan *plans.Plan
	// Resolution has the intent that follows from Options.Resolve; nil if there were no conflicts.
	Resolution *plans.Resolution
}

// Applier applies the intents of one manager to objects of one kind. It is safe for
// concurrent use.
type Applier struct {
	options      Options
	subresources []string // Options.Subresource; none for the main resource
	manager      atomic.Pointer[fieldmanager.FieldManager]
	memory       responses.Memory

	mu    sync.Mutex
	stats Stats
}

// New returns an Applier. manager must be for the version and subresource of the intents, and have the options of the
// server: which fields it resets, how it converts objects. If manager is nil, conflicts are not decided.
func New(manager *fieldmanager.FieldManager, options Options) *Applier {
	options.Plan.Force, options.Plan.Manager = options.Force, options.Manager
	a := &Applier{options: options}
	if options.Subresource != "" {
		a.subresources = []string{options.Subresource}
	}
	a.SetFieldManager(manager)
	return a
}

// SetFieldManager replaces the FieldManager, for a kind whose schema changed.
func (a *Applier) SetFieldManager(manager *fieldmanager.FieldManager) { a.manager.Store(manager) }

// Stats returns the numbers so far.
func (a *Applier) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// String returns what a log wants of a result: whether the apply was sent, and which conflicts were decided. It has no
// values of objects.
func (r Result) String() string {
	if r.Skipped {
		return "skipped"
	}
	text := "sent"
	if r.Plan != nil {
		text += ", " + r.Plan.String()
	}
	if r.Resolution != nil && r.Resolution.Force {
		text += ", forced"
	}
	return text
}

// Apply applies intent to the object of its name, unless the server is known to respond with cached, the object of the
// cache; nil if it has none. Apply changes neither. The error is the server's, or [plans.Resolve]'s.
func (a *Applier) Apply(
	ctx context.Context, r Resource, cached Object, intent *unstructured.Unstructured,
) (Result, error) {
	switch {
	case intent == nil:
		return Result{}, errors.New("expected an intent, got nil")
	case a.options.Manager == "":
		return Result{}, errors.New("options: expected the name of a field manager")
	}
	pending := a.begin(ctx, cached, intent)
	if pending.IsKnown() {
		a.count(Stats{Skipped: 1})
		return Result{Object: cached, Skipped: true}, nil
	}
	var stored *unstructured.Unstructured
	s := responses.Sending{
		Intent: intent, Resolve: a.options.Resolve, FieldManager: a.manager.Load(), Plan: a.options.Plan,
		Send: func(ctx context.Context, resolution *plans.Resolution) (served responses.Served, err error) {
			if stored, err = a.send(ctx, r, intent, resolution); err == nil && stored != nil {
				served = responses.Served{
					Version: stored.GetResourceVersion(), IsSame: pending.IsSame(stored), Entries: stored.GetManagedFields(),
				}
			}
			return served, err
		},
	}
	if getter, ok := r.(Getter); ok {
		s.Read = func(ctx context.Context) (*unstructured.Unstructured, error) {
			return getter.Get(ctx, intent.GetName(), metav1.GetOptions{}, a.subresources...)
		}
	}
	out, err := pending.Send(ctx, s)
	result, counts := Result{Plan: out.Plan, Resolution: out.Resolution}, Stats{Sent: uint64(out.Requests)}
	switch {
	case apierrors.IsConflict(err):
		counts.Conflicts = 1
	case err != nil:
		counts.Failed = 1
	default:
		result.Object = stored
	}
	if out.Resolution != nil {
		counts.Resolved = 1
	}
	a.count(counts)
	return result, err
}

// begin starts a request.
func (a *Applier) begin(ctx context.Context, cached Object, intent *unstructured.Unstructured) *responses.Pending {
	kind := intent.GroupVersionKind()
	r := responses.Request{
		Object: responses.KeyOf(kind.GroupKind(), intent), By: kind.Version,
		Manager: a.options.Manager, Subresource: a.options.Subresource, IsStoredAsStruct: a.options.IsStoredAsStruct,
	}
	if !gostruct.IsNil(cached) {
		r.Object, r.Cached = responses.KeyOf(kind.GroupKind(), cached), cached // an intent may leave the namespace out
	}
	manager := a.manager.Load()
	if manager != nil {
		r.Definition = manager
		reset := manager.Options().ResetFields[kind.GroupVersion().String()]
		r.LeavesStatus = reset != nil && reset.Filter(status).IsEmpty()
	}
	if a.options.Definition != nil {
		r.Definition = a.options.Definition(ctx)
	}
	// What can't be encoded can't be sent.
	if r.Intent, _ = json.Marshal(intent.Object); r.Intent == nil {
		r.Definition = nil
	}
	return a.memory.Begin(r)
}

var status = fieldpath.NewSet(fieldpath.NewPath("status"))

// send sends an intent, or what its conflicts were resolved to.
func (a *Applier) send(
	ctx context.Context, r Resource, intent *unstructured.Unstructured, resolution *plans.Resolution,
) (*unstructured.Unstructured, error) {
	force := a.options.Force
	if resolution != nil {
		intent, force = resolution.Intent, resolution.Force
	}
	sent := &unstructured.Unstructured{}
	sent.Object, _ = trees.Copy(intent.Object).(map[string]any)
	return r.Apply(ctx, intent.GetName(), sent,
		metav1.ApplyOptions{FieldManager: a.options.Manager, Force: force}, a.subresources...)
}

func (a *Applier) count(s Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Skipped += s.Skipped
	a.stats.Sent += s.Sent
	a.stats.Resolved += s.Resolved
	a.stats.Conflicts += s.Conflicts
	a.stats.Failed += s.Failed
}

// Resource applies objects of one kind in one namespace. dynamic.ResourceInterface of client-go is one. For
// controller-runtime's client, controllerruntime has a client that applies.
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
