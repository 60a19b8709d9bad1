// Package applier applies intents unless the server is known to do nothing with them. It is for controllers that apply
// the same intent again and again, and have the object in a cache.
//
//	a := applier.New(manager, applier.Options{Manager: "my-controller", Force: true})
//	result, err := a.Apply(ctx, dynamicClient.Resource(gvr).Namespace(ns), cached, intent)
//
// An apply is skipped only if the server itself answered the same intent for the same object, see [Answers]. So the
// first apply after a change of either is sent, and one more, which the server answers with the object as it is; then
// none is. What is sent is planned ([plans.New]) only if its conflicts have to be decided, and every error is the
// server's own.
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
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// maxTries is how often the object is read again after a conflict.
const maxTries = 3

// Options say how an Applier applies.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners. Resolve is not called then.
	Force bool
	// Resolve decides the conflicts of an apply to live, of which it gets the metadata: policy.Policy.Resolve does. It
	// returns a decision for each. If one is conflicts.Refuse, or Resolve nil, the intent is sent as it is, and the
	// server responds with the conflicts.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// Subresource is the one of the FieldManager; empty for the main resource.
	Subresource string
	// Plan says what the server does with a merged object. Its Manager and Force are
	// ignored.
	// For built-in types Semantics should be typed.Canonical(nil), and Defaults true
	// for all types with defaults.
	Plan plans.Options
	// Definition identifies the definition of the kind, and what else the server's answers depend on, such as what admits
	// its objects: see [Request]. Nil is for kinds that do not change but with [Applier.SetFieldManager].
	Definition func(context.Context) any
	// Answers are shared with whatever else writes to the same objects in this process; nil for some of its own.
	Answers *Answers
	// IsStoredAsStruct says that the server stores the kind as a Go struct, as those that are built in.
	IsStoredAsStruct bool
}

// Stats count what an Applier did.
type Stats struct {
	// Planned are the applies that were planned, so that their conflicts are decided.
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

	mu    sync.Mutex
	stats Stats
	found map[Key]conflicts.Conflicts
}

// by is what an answer depends on besides the object and the intent.
type by struct {
	version, subresource, manager string
	force                         bool
}

// New returns an Applier. manager must be for the version and subresource of the intents, and have the options of the
// server: which fields it resets, how it converts objects. If manager is nil, conflicts are not decided.
func New(manager *fieldmanager.FieldManager, options Options) *Applier {
	options.Plan.Force, options.Plan.Manager = options.Force, options.Manager
	if options.Answers == nil {
		options.Answers = &Answers{}
	}
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

// Apply applies intent to the object of its name, unless the server is known to answer with cached, the object of the
// cache; nil if it has none. Apply changes neither. The error is the server's, or that of [plans.Resolve].
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
	question := a.ask(ctx, cached, intent)
	if question.IsKnown() {
		a.count(func(s *Stats) { s.Skipped++ })
		return Result{Object: cached, Skipped: true}, nil
	}
	if isBehind := question.IsBehind(); isBehind && !gostruct.IsNil(cached) {
		a.count(func(s *Stats) { s.Behind++ })
	} else if !isBehind {
		if result, err = a.plan(ctx, cached, intent, a.foundBefore(cached, intent)); err != nil {
			return result, err
		}
	}
	for try := 0; ; try++ {
		stored, err := a.send(ctx, r, intent, result.Resolution)
		if err == nil && stored != nil {
			version := stored.GetResourceVersion()
			question.Answered(version, question.state.version != "" || IsSame(stored, cached), true)
			result.Object = stored
			return result, nil
		}
		question.Answered("", false, mayHaveWritten(err))
		live, again := a.readAgain(ctx, r, intent, err, try)
		if !again {
			return result, err
		}
		// None if the object has changed since: the plan says what conflicts now.
		found, _ := plans.FoundBy(err, live, nil)
		a.remember(intent, live, found)
		next, resolveErr := a.plan(ctx, live, intent, found)
		switch {
		case resolveErr != nil:
			return result, resolveErr
		case next.Plan == nil || next.Plan.Outcome == plans.Conflict:
			return result, err
		}
		result = next
	}
}

// mayHaveWritten reports whether an apply that failed may have been done all the same: any but one that the server
// refused.
func mayHaveWritten(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError || status.Status().Code == 0
}

// ask starts a request.
func (a *Applier) ask(ctx context.Context, cached Object, intent *unstructured.Unstructured) *Question {
	kind := intent.GroupVersionKind()
	r := Request{
		Object: KeyOf(kind.GroupKind(), intent), IsStoredAsStruct: a.options.IsStoredAsStruct,
		By:      by{kind.Version, a.options.Subresource, a.options.Manager, a.options.Force},
		Manager: a.options.Manager, Subresource: a.options.Subresource,
	}
	if !gostruct.IsNil(cached) {
		r.Object, r.Cached = KeyOf(kind.GroupKind(), cached), cached // an intent may leave the namespace out
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
	return a.options.Answers.Ask(r)
}

var status = fieldpath.NewSet(fieldpath.NewPath("status"))

// foundBefore returns the conflicts that the server found when it was last sent an intent of the object, if their
// owners still own the fields: those that a plan can't find, because they are of other versions, are decided without a
// 409 then.
func (a *Applier) foundBefore(cached Object, intent *unstructured.Unstructured) conflicts.Conflicts {
	a.mu.Lock()
	found := a.found[KeyOf(intent.GroupVersionKind().GroupKind(), cached)]
	a.mu.Unlock()
	list, _ := managedfields.Read(cached) // none of what can't be read
	for _, c := range found {
		if e := list.Get(c.Owner); e == nil || e.APIVersion != c.APIVersion || !e.Owned().Has(c.Path) {
			return nil
		}
	}
	return found
}

// remember remembers the conflicts with entries of other versions than the intent's; none forgets them.
func (a *Applier) remember(intent, live *unstructured.Unstructured, found conflicts.Conflicts) {
	key := KeyOf(intent.GroupVersionKind().GroupKind(), live)
	isOther := func(c conflicts.Conflict) bool { return c.APIVersion != intent.GetAPIVersion() }
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !slices.ContainsFunc(found, isOther):
		delete(a.found, key)
	case a.found == nil || len(a.found) == maxRecords:
		a.found = map[Key]conflicts.Conflicts{key: found}
	default:
		a.found[key] = found
	}
}

// plan plans an intent on an object, and resolves its conflicts if Options.Resolve decides all of them: those that a
// server found, or else the plan's. The plan is nil if it does not matter, and for an intent that can't be planned.
func (a *Applier) plan(
	ctx context.Context, live Object, intent *unstructured.Unstructured, found conflicts.Conflicts,
) (Result, error) {
	manager, options := a.manager.Load(), a.options.Plan
	if manager == nil || a.options.Resolve == nil || a.options.Force {
		return Result{}, nil
	}
	options.Found = found
	a.count(func(s *Stats) { s.Planned++ })
	plan, err := plans.New(ctx, manager, live, intent, options)
	if err != nil {
		return Result{}, nil // The server says what is wrong with it.
	}
	planned := Result{Plan: plan}
	if plan.Outcome != plans.Conflict {
		return planned, nil
	}
	metadata := meta.AsPartialObjectMetadata(live).DeepCopy()
	metadata.SetGroupVersionKind(intent.GroupVersionKind())
	decisions := a.options.Resolve(metadata, slices.Clone(plan.Conflicts))
	if len(decisions) != len(plan.Conflicts) {
		return planned, fmt.Errorf("resolve conflicts: expected %d decisions, got %d", len(plan.Conflicts), len(decisions))
	}
	if slices.Contains(decisions, conflicts.Refuse) {
		return planned, nil
	}
	resolution, err := plans.Resolve(ctx, manager, live, intent, func(conflicts.Conflict) (next conflicts.Decision) {
		next, decisions = decisions[0], decisions[1:]
		return next
	}, options)
	if err != nil {
		return planned, fmt.Errorf("resolve conflicts: %w", err)
	}
	a.count(func(s *Stats) { s.Resolved++ })
	return Result{Plan: resolution.Plan, Resolution: resolution}, nil
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
		metav1.ApplyOptions{FieldManager: a.options.Manager, Force: force}, a.subresources...)
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
	live, err := getter.Get(ctx, intent.GetName(), metav1.GetOptions{}, a.subresources...)
	return live, err == nil && live != nil
}

func (a *Applier) count(f func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.stats)
}

// Resource applies objects of one kind in one namespace. dynamic.ResourceInterface of client-go is one. For
// controller-runtime's client, controllerruntime has an Applier.
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
