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

// maxTries is how often the object is read again after a conflict.
const maxTries = 3

// Sending says how a request is sent, and how its conflicts are decided.
type Sending struct {
	Intent *unstructured.Unstructured
	// Send sends the intent, or what its conflicts were resolved to.
	Send func(context.Context, *plans.Resolution) (Served, error)
	// IsDryRun says that a server stores nothing.
	IsDryRun bool
	// Resolve decides conflicts, as applier.Options has it. Nil: they are the server's.
	Resolve func(live *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision
	// FieldManager and Plan are what conflicts are planned with; without a FieldManager they are the server's.
	FieldManager *fieldmanager.FieldManager
	Plan         plans.Options
	// Read reads the object past the cache after a conflict; nil if that can't be done.
	Read func(context.Context) (*unstructured.Unstructured, error)
}

// Served is a server's response.
type Served struct {
	// Version is the resourceVersion of the object in it, empty for an error.
	Version string
	// IsSame says that the object is the cached one, as far as the caller can tell.
	IsSame bool
	// Object is the object in JSON if it is not the cached one, and the caller can respond with it.
	Object string
	// Entries are the object's managed fields; nil means the cached object's.
	Entries []metav1.ManagedFieldsEntry
	// HasWritten is false for a dry run, and for a request that was refused. Send sets it.
	HasWritten bool
}

// Outcome is what was done with a request.
type Outcome struct {
	// Plan is the plan of what was sent, if Resolve needed one, and Resolution what conflicts were resolved to.
	Plan       *plans.Plan
	Resolution *plans.Resolution
	// Requests is how often the apply was sent.
	Requests int
}

// Send sends a request until it has no conflict that is decided, and learns from the responses.
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
		// None if the object has changed since: the plan says what conflicts now.
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

// mayHaveWritten reports whether an apply may have been done: any but one that the server refused.
func mayHaveWritten(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError || status.Status().Code == 0
}

// foundBefore returns the conflicts that the server found when it was last sent an intent of the object, if their
// owners still own the fields: those that a plan can't find, because they are of other versions, are decided without a
// 409 then.
func (p *Pending) foundBefore() conflicts.Conflicts {
	p.memory.mu.Lock()
	found := p.record.found[p.request.By]
	p.memory.mu.Unlock()
	list, _ := managedfields.Read(p.request.Cached) // none of what can't be read
	for _, c := range found {
		if e := list.Get(c.Owner); e == nil || e.APIVersion != c.APIVersion || !e.Owned().Has(c.Path) {
			return nil
		}
	}
	return found
}

// remember remembers the conflicts with entries of other versions than the intent's; none forgets them.
func (p *Pending) remember(intent *unstructured.Unstructured, found conflicts.Conflicts) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if slices.ContainsFunc(found, func(c conflicts.Conflict) bool { return c.APIVersion != intent.GetAPIVersion() }) {
		p.record.found[p.request.By] = found
	} else {
		delete(p.record.found, p.request.By)
	}
}

// decides reports whether conflicts are decided.
func (s Sending) decides() bool { return s.FieldManager != nil && s.Resolve != nil && !s.Plan.Force }

// plan plans the intent on an object, and resolves its conflicts if Resolve decides all of them: those that a server
// found, or else the plan's. The plan is nil if it does not matter, and for an intent that can't be planned.
func (s Sending) plan(ctx context.Context, live Object, found conflicts.Conflicts) (out Outcome, err error) {
	if !s.decides() {
		return out, nil
	}
	options := s.Plan
	options.Found = found
	out.Plan, err = plans.New(ctx, s.FieldManager, live, s.Intent, options)
	if err != nil || out.Plan.Outcome != plans.Conflict {
		return out, nil // If there is an error, the server says what is wrong.
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
