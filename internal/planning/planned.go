// Package planning plans what applies of intents do to the objects in a place: it asks the server where there is one,
// decides conflicts by a policy, and finds what stays although an intent does not have it. It prints nothing.
package planning

import (
	"context"
	"iter"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// Target is the object of an intent, and Desired an intent with the object that it is for.
type (
	Target  = place.Target
	Desired = place.Desired
)

// Planned is an intent with its plan.
type Planned struct {
	*place.Desired
	*plans.Plan
	Options plans.Options
	// Served is the object after a dry run of the apply on the server; nil if there was none.
	Served map[string]any
	// Leftovers are about fields that stay, see [Planned.FindLeftovers].
	Leftovers []advice.Suggestion
	// Refused are why the server refuses ways out of the conflicts, see [Planned.AskWays].
	Refused map[conflicts.Decision]string
	// MoveRefused: the manager's own updates can't move to its applies, or the server refuses the apply also afterwards.
	MoveRefused bool
	// Migration are the changes of a second apply by kubectl, when it takes over what it applied client-side.
	Migration []plans.Change
	// Decided are the conflicts that a policy decided, see [Planned.Decide].
	Decided []Decided
	// Drift is what drifts in the live object; nil if that was not asked, see [Planned.FindDrift].
	Drift *Drift
	// Moved is true if the plan is for the live object as it will be after its fields moved to server-side apply. The
	// server does not have that object yet, so it gets no dry run.
	Moved bool
}

// Changes returns the fields that change by the dry run, or else by the plan.
func (p *Planned) Changes() iter.Seq[plans.Change] {
	if p.Served != nil {
		return p.Target.Changes(p.Desired.Object, p.Served)
	}
	return p.Plan.Changes()
}

// Ask sends a dry run of the apply to the server. The result replaces the plan, or its error: Plan may be nil. The
// error is why the server refuses the apply. isAllowed is false, and the plan stays, if the user may not apply.
func (p *Planned) Ask(ctx context.Context, at place.Place, subresource string) (isAllowed bool, err error) {
	var known conflicts.Conflicts
	plan := plans.Plan{}
	if p.Plan != nil {
		plan, known = *p.Plan, p.Plan.Conflicts
	}
	answer, err := p.Desired.Ask(ctx, at, p.Options.Force, subresource, known)
	if apierrors.IsForbidden(err) && p.Plan != nil && !p.MayWrite(ctx, at, subresource) {
		return false, nil
	}
	if err != nil {
		return true, place.ServerError(err)
	}
	p.Options.Found, plan.Conflicts = answer.Conflicts, answer.Conflicts
	if len(answer.Conflicts) > 0 {
		plan.Outcome = plans.Conflict
	} else {
		plan.Outcome, p.Served = p.ServedOutcome(answer.Object), answer.Object
	}
	p.Plan = &plan
	return true, nil
}

// ConflictReport returns the conflicts of the plan with the ways out of them.
func (p *Planned) ConflictReport(ctx context.Context) (conflictreport.Report, error) {
	return conflictreport.New(ctx, p.Fields, place.Wrap(p.Desired.Object), place.Wrap(p.Tree), p.Title(), p.Options)
}

// A Loss is a field that a manager owns no longer, and that the object does not lose.
type Loss struct {
	Field fieldpath.Path
	// Owners are the managers that own it then; if there is none, no apply removes it.
	Owners []managedfields.Key
	// Changes: its value is another one then, which an owner sets.
	Changes bool
	// Absent: the object did not have it before, such as stringData of a Secret.
	Absent bool
}

// Fate splits the fields that a manager loses into those whose value goes, although a default may be set in its place,
// and the others.
func (p *Planned) Fate(change plans.OwnershipChange) (removed *fieldpath.Set, stay []Loss) {
	after, t := p.ObjectAfter(), p.Kind.Typ
	leaves := sync.OnceValue(func() *fieldpath.Set { return t.FieldSet(after).Leaves() }) // few plans ask
	list, _ := managedfields.Read(p.Plan.Object)
	var gone []fieldpath.Path
	for path := range change.Loses.Union(change.Removes).Leaves().All() {
		one := Loss{Field: slices.Clone(path)}
		for i := range list {
			if list[i].Key != change.Manager && list[i].Owned().Has(path) {
				one.Owners = append(one.Owners, list[i].Key)
			}
		}
		was, wasThere := t.Get(p.Desired.Object, path)
		is, isThere := t.Get(after, path)
		one.Absent = !wasThere && !isThere
		// A map that has fields is there as before, whatever becomes of them.
		one.Changes = !typed.Equal(was, is) && leaves().Has(path)
		if !one.Absent && (!isThere || one.Changes && one.Owners == nil) {
			gone = append(gone, one.Field)
		} else {
			stay = append(stay, one)
		}
	}
	return fieldpath.NewSet(gone...), stay
}

// ObjectAfter returns the object after the apply: from the server's dry run, or else from the plan.
func (p *Planned) ObjectAfter() map[string]any {
	if p.Served != nil {
		return p.Served
	}
	r := place.Request{Kind: p.Kind, Types: p.Types, Apply: true}
	after := r.Reset(p.Desired.Object, place.Unwrap(p.Plan.Object))
	if p.Options.Defaults {
		if tree, ok := p.Kind.Typ.Default(after).(map[string]any); ok {
			after = tree
		}
	}
	if p.Options.Defaulter != nil {
		stored := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(after)}
		p.Options.Defaulter(stored)
		after = stored.Object
	}
	return after
}

// MoveToApply replaces the live object by the one after its fields moved to server-side apply, if a manager only
// updated it before.
func (p *Planned) MoveToApply(ctx context.Context) error {
	w := p.Desired
	if w.Object == nil {
		return nil
	}
	updaters, err := upgrade.Owners(place.Wrap(w.Object), metav1.ManagedFieldsOperationUpdate, nil)
	isOwn := func(e managedfields.Entry) bool { return e.Manager == w.Manager && e.Subresource == "" }
	if err != nil || !slices.ContainsFunc(updaters, isOwn) {
		return err
	}
	moved, err := upgrade.ToServerSide(ctx, place.Wrap(w.Object), upgrade.ServerSideOptions{
		Types: w.Types, Converter: w.Converter(), Manager: w.Manager, From: []string{w.Manager}, Everything: true,
	})
	if err != nil || !moved.Changed {
		return err
	}
	p.Desired = w.WithManagedFields(place.Unwrap(moved.Object))
	p.Moved = true
	return nil
}
