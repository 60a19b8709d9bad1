package responses

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
)

// maxTries is the maximum number of times that the object is read again after a conflict.
const maxTries = 3

// Sending describes how a request is sent, and how its conflicts are decided.
type Sending struct {
	Intent *unstructured.Unstructured
	// Send sends the intent of the resolution or, if the resolution is nil, the original intent.
	Send func(context.Context, *plans.Resolution) (Served, error)
	// IsDryRun means that the server stores nothing.
	IsDryRun bool
	// Resolve decides conflicts, like Resolve in applier.Options. If it is nil, the server's conflicts are returned.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// FieldManager and Plan are used to plan conflicts. Without a FieldManager, the server's conflicts are returned.
	FieldManager *fieldmanager.FieldManager
	Plan         plans.Options
	// Read reads the object without the cache after a conflict; nil if that is impossible.
	Read func(context.Context) (*unstructured.Unstructured, error)
}

// Served is a server's response.
type Served struct {
	// Version is the resourceVersion of the returned object; empty for an error.
	Version string
	// IsSame means that the object is the cached one, as far as the caller knows.
	IsSame bool
	// Object is the object in JSON if it differs from the cached one and the caller can return it as a response.
	Object string
	// Entries are the object's managed fields; nil means the cached object's managed fields.
	Entries []metav1.ManagedFieldsEntry
	// HasWritten is false for a dry run, and for a request that was rejected. Send sets it.
	HasWritten bool
}

// Outcome is the result of sending a request.
type Outcome struct {
	// Plan is the plan of the sent intent, if Resolve needed one; Resolution has the intent after conflicts were
	// resolved.
	Plan       *plans.Plan
	Resolution *plans.Resolution
	// Requests is the number of times that the apply was sent.
	Requests int
}

// Send sends a request. If the server finds conflicts, and Resolve decides all of them, Send sends the resolved intent.
// Send learns from each response.
func (p *Pending) Send(ctx context.Context, s Sending) (out Outcome, err error) {
	if !p.IsBehind() {
		if out, err = s.plan(ctx, p.request.Cached, p.foundBefore()); err != nil {
			return out, err
		}
	}
	for requests := 1; ; requests++ {
		out.Requests = requests
		served, err := s.Send(ctx, out.Resolution)
		served.HasWritten = !s.IsDryRun && mayHaveWritten(err)
		p.Learn(served)
		if err == nil || requests > maxTries || s.Read == nil || !s.decides() || !apierrors.IsConflict(err) {
			return out, err
		}
		live, readErr := s.Read(ctx)
		if readErr != nil || live == nil {
			return out, err
		}
		// If the object has changed since the response, found is empty, and the plan finds the current conflicts.
		found, _ := plans.FoundBy(err, live, nil)
		p.remember(s.Intent, found)
		next, resolveErr := s.plan(ctx, live, found)
		next.Requests = requests
		switch {
		case resolveErr != nil:
			return next, resolveErr
		case next.Plan == nil || next.Plan.Outcome == plans.Conflict:
			return out, err
		}
		out = next
	}
}

// mayHaveWritten reports whether an apply may have been stored: it is false only if the server rejected the apply.
func mayHaveWritten(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError || status.Status().Code == 0
}

// foundBefore returns the conflicts that the server found when an intent for the object was last sent; none if an owner
// no longer owns its field. A plan can't find conflicts at other versions. If the last response reported them, they can
// be decided without another 409.
func (p *Pending) foundBefore() conflicts.Conflicts {
	p.memory.mu.Lock()
	found := p.record.found[p.request.By]
	p.memory.mu.Unlock()
	list, _ := managedfields.Read(p.request.Cached) // nil if they can't be read
	for _, c := range found {
		if e := list.Get(c.Owner); e == nil || e.APIVersion != c.APIVersion || !e.Owned().Has(c.Path) {
			return nil
		}
	}
	return found
}

// remember records the conflicts if at least one is with an entry of another version than the intent's. Otherwise, it
// forgets the recorded conflicts.
func (p *Pending) remember(intent *unstructured.Unstructured, found conflicts.Conflicts) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if slices.ContainsFunc(found, func(c conflicts.Conflict) bool { return c.APIVersion != intent.GetAPIVersion() }) {
		p.record.found[p.request.By] = found
	} else {
		delete(p.record.found, p.request.By)
	}
}

// decides reports whether conflicts are decided here.
func (s Sending) decides() bool { return s.FieldManager != nil && s.Resolve != nil && !s.Plan.Force }

// plan plans the intent for an object, and resolves its conflicts if Resolve decides all of them. If a server found
// conflicts, plan resolves these; otherwise, it resolves the conflicts that the plan finds. The plan is nil if it is
// not needed, or if the intent can't be planned.
func (s Sending) plan(ctx context.Context, live Object, found conflicts.Conflicts) (out Outcome, err error) {
	if !s.decides() {
		return out, nil
	}
	options := s.Plan
	options.Found = found
	out.Plan, err = plans.New(ctx, s.FieldManager, live, s.Intent, options)
	if err != nil || out.Plan.Outcome != plans.Conflict {
		return out, nil // After an error, the server reports what is wrong.
	}
	metadata := meta.AsPartialObjectMetadata(live).DeepCopy()
	metadata.SetGroupVersionKind(s.Intent.GroupVersionKind())
	decisions := s.Resolve(metadata, slices.Clone(out.Plan.Conflicts))
	if slices.Contains(decisions, conflicts.Refuse) {
		return out, nil
	}
	decide := func(conflicts.Conflicts) []conflicts.Decision { return decisions }
	out.Resolution, err = plans.Resolve(ctx, s.FieldManager, live, s.Intent, decide, options)
	if err != nil {
		return out, fmt.Errorf("resolve conflicts: %w", err)
	}
	out.Plan = out.Resolution.Plan
	return out, nil
}
