// Package applier applies intents, and skips an apply if the server is known to change nothing. It is for controllers
// that apply the same intent again and again, and have the object in a cache.
//
//	a := applier.New(manager, applier.Options{Manager: "my-controller", Force: true})
//	result, err := a.Apply(ctx, dynamicClient.Resource(gvr).Namespace(ns), cached, intent)
//
// An apply is skipped only if the server itself returned the same object for the same intent before. So after a change
// of the object or the intent, applies are sent until the server returns the object unchanged, usually for the second
// apply. Further applies are skipped. Applies are planned ([plans.New]) only to decide conflicts. Unless an argument is
// invalid, errors come from the server or from these decisions.
//
// # Conflicts
//
// With Options.Resolve, each conflict of an apply is decided: the field is forced, given up, or shared with its owner
// ([plans.Resolve]). The resulting intent is planned, and sent in place of the original one. Each later apply that is
// sent decides its conflicts again. So a given-up field is left out as long as it is in conflict. The conflicts are
// found in the cached object, without a request. Package policy decides by field and owner, with rules in Go or from a
// file:
//
//	p := &policy.Policy{Rules: []policy.Rule{
//		{Fields: []string{".spec.replicas"}, Decision: conflicts.GiveUp, Reason: "an autoscaler's"},
//		{Managers: []string{"kubectl-*"}, Decision: conflicts.Force},
//	}}
//	applier.Options{Manager: "my-controller", Resolve: p.Resolve}
//
// The server may still respond with 409: the cache was stale, or the server found a conflict at another version, which
// the plan could not find. If the Resource is a [Getter], the Applier then reads the object and decides its conflicts
// again, at most three times.
//
// # Stale caches
//
// A cached object may be older than the stored object, because the cache has not yet seen a change:
//
//   - If another client made the change, an apply that would correct it may be skipped. A controller that watches the
//     object receives the event later, applies again, and corrects the change.
//   - If this Applier made the change, applies are not skipped until the cache has the change.
//
// A controller that applies once and does not watch must not skip applies: it must read the object from the server, or
// send the apply.
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

// Options configure an Applier.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners. With Force, Resolve is not called.
	Force bool
	// Resolve decides the conflicts of an apply, given the metadata of the live object; policy.Policy.Resolve is such a
	// function. It returns a decision for each conflict. If Resolve is nil, or a decision is conflicts.Refuse, the
	// intent is sent unchanged, and the server responds with the conflicts.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// Subresource is the subresource of the FieldManager; empty for the main resource.
	Subresource string
	// Plan describes how the server processes a merged object; strategy.Strategy.Plan returns such options. Manager and
	// Force in Plan are ignored.
	Plan plans.Options
	// Definition returns a value that identifies the definition of the kind and everything else that the server's
	// responses depend on, such as the configuration of admission. The value must be comparable; nil means that the
	// definition is not known yet. If Options.Definition itself is nil, only [Applier.SetFieldManager] tells the
	// Applier that the kind has changed.
	Definition func(context.Context) any
	// IsStoredAsStruct means that the server stores the kind as a Go struct, like built-in kinds.
	IsStoredAsStruct bool
}

// Stats count what an Applier has done.
type Stats struct {
	// Skipped is the number of applies that were not sent.
	Skipped uint64
	// Sent is the number of requests to apply. An apply whose conflicts are decided again sends several requests.
	Sent uint64
	// Resolved is the number of applies whose conflicts Options.Resolve decided.
	Resolved uint64
	// Conflicts is the number of applies that failed with a conflict.
	Conflicts uint64
	// Failed is the number of applies that failed with another error.
	Failed uint64
}

// Object is controller-runtime's client.Object: a Go struct or *unstructured.Unstructured.
type Object = responses.Object

// Result is the result of an apply.
type Result struct {
	// Object is the stored object: the cached object if the apply was skipped, otherwise the object that the server
	// returned.
	Object Object
	// Skipped means that no request was sent.
	Skipped bool
	// Plan is the plan of the intent that was sent, if Options.Resolve needed a plan. The plan's live object is the
	// cached object, or the object that was read again after a conflict.
	Plan *plans.Plan
	// Resolution has the intent that results from Options.Resolve; nil if there were no conflicts.
	Resolution *plans.Resolution
}

// Applier applies the intents of one manager to objects of one kind. It is safe for concurrent use.
type Applier struct {
	options      Options
	subresources []string // contains Options.Subresource; empty for the main resource
	manager      atomic.Pointer[fieldmanager.FieldManager]
	memory       responses.Memory

	mu    sync.Mutex
	stats Stats
}

// New returns an Applier. manager must be for the version and subresource of the intents, and have the options of the
// server, such as its reset fields and its converter. If manager is nil, conflicts are not decided.
func New(manager *fieldmanager.FieldManager, options Options) *Applier {
	options.Plan.Force, options.Plan.Manager = options.Force, options.Manager
	a := &Applier{options: options}
	if options.Subresource != "" {
		a.subresources = []string{options.Subresource}
	}
	a.SetFieldManager(manager)
	return a
}

// SetFieldManager replaces the FieldManager after the schema of the kind changed.
func (a *Applier) SetFieldManager(manager *fieldmanager.FieldManager) { a.manager.Store(manager) }

// Stats returns the current counts.
func (a *Applier) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// String returns a text for logs: whether the apply was sent, and which conflicts were decided. It contains no values
// of objects.
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

// Apply applies intent to the object that it names, unless the server is known to return cached unchanged. cached is
// the object from the cache; nil if the cache has none. Apply modifies neither argument. Unless an argument is invalid,
// the error comes from the server or from [plans.Resolve].
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
		r.Object, r.Cached = responses.KeyOf(kind.GroupKind(), cached), cached // an intent may omit the namespace
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
	// An intent that can't be encoded is sent, so that the client returns the error.
	if r.Intent, _ = json.Marshal(intent.Object); r.Intent == nil {
		r.Definition = nil
	}
	return a.memory.Begin(r)
}

var status = fieldpath.NewSet(fieldpath.NewPath("status"))

// send sends an intent, or the resolved intent if there is a resolution.
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

// Resource applies objects of one kind in one namespace. client-go's dynamic.ResourceInterface implements it. For
// controller-runtime, package controllerruntime has a client that applies.
type Resource interface {
	// Apply sends obj, an intent, and returns the resulting stored object.
	Apply(ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions,
		subresources ...string) (*unstructured.Unstructured, error)
}

// Getter is a Resource that reads objects from the server, not from a cache. client-go's dynamic.ResourceInterface
// implements it. Without a Getter, only conflicts with the cached object are resolved.
type Getter interface {
	Resource
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (
		*unstructured.Unstructured, error)
}
