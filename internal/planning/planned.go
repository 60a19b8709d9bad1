// Package planning plans what applies of intents do to objects in a place: it sends dry runs to the server if there
// is one, decides conflicts by a policy, and finds fields that stay although an intent lacks them. It prints nothing.
package planning

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// Target is the place of one object; Desired is an intent with its target.
type (
	Target  = place.Target
	Desired = place.Desired
)

// SetByServer is the text in place of values that the server chooses anew for each write.
const SetByServer = place.SetByServer

// Planned is an intent with the plan of its apply.
type Planned struct {
	*place.Desired
	*plans.Plan
	Options plans.Options
	// Served is the object that a dry run of the apply returned; nil if no dry run was sent.
	Served map[string]any
	// Leftovers are suggestions about fields that stay, see [Planned.FindLeftovers].
	Leftovers []advice.Suggestion
	// Refused has the server's error for each rejected way out of the conflicts, see [Planned.AskWays].
	Refused map[conflicts.Decision]string
	// Also has, for each accepted way out of the conflicts, the fields of other managers that the server changes as
	// well, see [Planned.AskWays].
	Also map[conflicts.Decision][]fieldpath.Path
	// Overruled are fields in conflict to which the server gives another value than the intent even if the apply is
	// forced. Each has the intent's value and the server's value, see [Planned.AskWays].
	Overruled []plans.Change
	// Untried is true if not all suggestions were tried, because of [Options.Tries]. Leftovers then do not promise that
	// the server accepts the apply.
	Untried bool
	// MoveRefused is true if the fields in the manager's own Update entry can't move to its Apply entry, or if the
	// server would reject the apply even after this move.
	MoveRefused bool
	// Ways are actions after which the server accepts an apply that it rejected, or reports only conflicts. Conflicts
	// have their own ways out.
	Ways []advice.Suggestion
	// Undecodable suggests removing the entries of the live object that can't be decoded; nil if all entries can be
	// decoded.
	Undecodable []advice.Suggestion
	// Migration has the changes of kubectl's second apply, by which it takes over client-side applied fields. If there
	// are conflicts, these are the changes after a forced apply. IsMigrationUnknown is true if the changes are not known,
	// because there are entries of other versions, or because the server did not answer a dry run.
	Migration          []plans.Change
	IsMigrationUnknown bool
	// Decided are the conflicts that a policy has decided, see [Planned.Decide].
	Decided []Decided
	// Drift is the drift of the live object; nil if it was not requested, see [Planned.FindDrift].
	Drift *Drift
	// Moved is true if the plan is for the live object as it will be after its fields have moved to server-side
	// apply. No dry run is sent, because the server does not have that object yet.
	Moved bool
	// isStale is true if the object has probably changed since it was read, see the method saw.
	isStale bool
}

// A plan for a Scale has paths of the Scale. Changes, Found, ConflictReport, FieldsInParent and Fate return the paths
// that the fields have in the parent object, see [Target.InParent].

// Changes returns the changes of fields: from the dry run if there was one, otherwise from the plan.
func (p *Planned) Changes() iter.Seq[plans.Change] {
	changes := p.Plan.Changes()
	if p.Served != nil {
		changes = p.Target.Changes(p.Desired.Object, p.Served)
	}
	return func(yield func(plans.Change) bool) {
		for change := range changes {
			if change.Path = p.InParent(change.Path); !yield(change) {
				return
			}
		}
	}
}

// Found returns the conflicts of the plan.
func (p *Planned) Found() conflicts.Conflicts { return p.inParent(p.Conflicts) }

// FieldsInParent returns the paths that fields of the target have in the parent object.
func (p *Planned) FieldsInParent(fields *fieldpath.Set) *fieldpath.Set {
	if p.Parent() == p.Target {
		return fields
	}
	var paths []fieldpath.Path
	for path := range fields.All() {
		paths = append(paths, slices.Clone(p.InParent(path)))
	}
	return fieldpath.NewSet(paths...)
}

// Ask sends a dry run of the apply to the server. The result of the dry run replaces the plan or the error of planning;
// the plan may be nil before the call. The returned error is the server's reason for rejecting the apply. If the user
// may not apply, isAllowed is false and the plan does not change.
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
		p.saw(answer.Object, nil)
		plan.Outcome, p.Served = p.ServedOutcome(answer.Object), answer.Object
		if len(p.OtherVersions(p.Desired.Object)) > 0 {
			plan.Object = place.Wrap(answer.Object)
			before, _ := managedfields.Read(place.Wrap(p.Desired.Object)) // as after a plan, there is no error
			after, _ := managedfields.Read(plan.Object)
			plan.Ownership = plans.OwnershipChanges(before, after)
		}
	}
	p.Plan = &plan
	return true, nil
}

// saw sets isStale if a server's response to a dry run shows that the object has changed since it was read. A dry run
// does not change the resourceVersion, so another resourceVersion in the response shows a change. So does a conflict,
// because updates have the resourceVersion as a precondition.
func (p *Planned) saw(served map[string]any, err error) {
	if err != nil {
		p.isStale = p.isStale || apierrors.IsConflict(err)
	} else if document.TextAt(served, "resourceVersion") != document.TextAt(p.Desired.Object, "resourceVersion") {
		p.isStale = true
	}
}

// ConflictReport returns the conflicts of the plan with the ways out of them.
func (p *Planned) ConflictReport(ctx context.Context) (conflictreport.Report, error) {
	live, intent := place.Wrap(p.Desired.Object), place.Wrap(p.Tree)
	out, err := conflictreport.New(ctx, p.Fields, live, intent, p.Title(), p.Options)
	out.Conflicts = p.inParent(out.Conflicts)
	for _, way := range out.Ways {
		for _, fields := range append([][]fieldpath.Path{way.Promise.Moves}, lost(way.Losses)...) {
			for i := range fields {
				fields[i] = p.InParent(fields[i])
			}
		}
	}
	return out, err
}

func lost(losses []conflictreport.Loss) (out [][]fieldpath.Path) {
	for _, loss := range losses {
		out = append(out, loss.Fields)
	}
	return out
}

// Loss is a field that a manager no longer owns after an apply, and that the apply of this manager does not remove.
type Loss struct {
	Field fieldpath.Path
	// Owners are the managers that own the field, fields in it, or a whole value around it after the apply, at any
	// version. If Owners and MayOwn are empty, no apply can remove only this field.
	Owners []managedfields.Key
	// MayOwn are entries that may own the field, but whose versions can't be compared here.
	MayOwn managedfields.Entries
	// Around is true if a manager has applied a list item or map around the field. An apply that drops this item or map
	// also removes the field.
	Around bool
	// Removed is true if the apply of another manager removes the field.
	Removed bool
	// Changes is true if the field gets another value. If the manager of the apply does not own the field afterwards, the
	// server sets this value.
	Changes bool
	// Absent is true if the field was absent before the apply, such as stringData of a Secret.
	Absent bool
	// Unknown is true if only the server knows what the apply does to the field, because the manager's entry is at
	// another version.
	Unknown bool
}

// Fate divides the fields that a manager loses into two groups: the fields that its apply removes, and all other
// fields. A field is also removed if a default replaces its value. If the manager still owns the field, fields in it,
// or a whole value around it, at any version, the field is not lost.
func (p *Planned) Fate(change plans.OwnershipChange) (removed *fieldpath.Set, others []Loss) {
	version := cmp.Or(change.From, change.Version) // the version of the lost paths
	after, t := p.ObjectAfter(), cmp.Or(p.TypeAt(version), p.Kind.Typ)
	leavesOf := func(tree map[string]any) func() *fieldpath.Set { // computed only if a plan needs them
		return sync.OnceValue(func() *fieldpath.Set { return t.FieldSet(tree).Leaves() })
	}
	leavesBefore, leavesAfter := leavesOf(p.Desired.Object), leavesOf(after)
	list, _ := managedfields.Read(p.Plan.Object)
	wholes := fieldsets.Wholes{FieldSet: func(version string) *fieldpath.Set {
		if t := p.TypeAt(version); t != nil {
			return t.FieldSet(after)
		}
		return nil
	}}
	isApplier := change.Manager.Manager == p.Desired.Manager
	var gone []fieldpath.Path
	for path := range change.Loses.Union(change.Removes).Leaves().All() {
		loss := Loss{Field: slices.Clone(path)}
		for i := range list {
			e := &list[i]
			isSame := e.APIVersion == version || path[0] == fieldpath.FieldElement("metadata")
			switch {
			case isSame && fieldsets.HasAtOrBelow(e.Owned(), path),
				!isSame && wholes.Owns(e.Owned(), e.APIVersion, path):
				loss.Owners = append(loss.Owners, e.Key)
			case !isSame && p.Converter() == nil && e.Subresource == "":
				loss.MayOwn = append(loss.MayOwn, *e)
			}
			for n := 1; n < len(path) && list[i].Operation == metav1.ManagedFieldsOperationApply; n++ {
				loss.Around = loss.Around || list[i].Owned().Has(path[:n])
			}
		}
		if slices.Contains(loss.Owners, change.Manager) {
			continue
		}
		was, wasThere := t.Get(p.Desired.Object, path)
		is, isThere := t.Get(after, path)
		loss.Absent = !wasThere // if it exists afterwards, the server has set its default
		// A map that contains fields after the apply stays, so its value is not compared. Duplicates of an item are one
		// field.
		loss.Changes = !typed.Equal(was, is) && (leavesAfter().Has(path) ||
			!path[len(path)-1].IsField() && leavesBefore().Has(path))
		loss.Removed = !loss.Absent && (!isThere || loss.Changes && loss.Owners == nil)
		loss.Unknown = !loss.Absent && !loss.Removed && p.isUncompared(change)
		if loss.Removed && isApplier {
			gone = append(gone, loss.Field)
		} else {
			others = append(others, loss)
		}
	}
	for i := range others {
		others[i].Field = p.InParent(others[i].Field)
	}
	return p.FieldsInParent(fieldpath.NewSet(gone...)), others
}

// isUncompared reports whether a change moves the entry of the intent's manager to another version and drops fields,
// and only the server can compare the versions. Whether the apply removes these fields is then not known.
func (p *Planned) isUncompared(change plans.OwnershipChange) bool {
	return p.Served == nil && p.Converter() == nil && change.From != "" && !change.Loses.Leaves().IsEmpty() &&
		change.Manager.Manager == p.Desired.Manager &&
		change.Manager.Operation == metav1.ManagedFieldsOperationApply
}

// Uncompared returns the reasons why a plan without the server is incomplete: it can't compare entries at other
// versions. If they are entries of other managers, not all conflicts are known. If the entry of the intent's manager is
// one of them, it is not known what the apply removes.
func (p *Planned) Uncompared() (all []error) {
	if p.Served != nil || p.Outcome == plans.Unchanged || p.Outcome == plans.Conflict {
		return nil
	}
	if !p.KnowsConflicts() {
		all = append(all, p.Desired.Uncompared())
	}
	for _, change := range p.Ownership {
		if p.isUncompared(change) {
			all = append(all, fmt.Errorf("%s: what the apply removes is not known: the entry of %q is at %s, which can't be "+
				"compared without the server", p.Title(), p.Desired.Manager, change.From))
		}
	}
	return all
}

// KnowsConflicts reports whether all conflicts of the apply are known, or the user forces all of them. A policy forces
// only the conflicts that it has decided.
func (p *Planned) KnowsConflicts() bool {
	isForced := p.Options.Force && len(p.Decided) == 0
	return isForced || p.Served != nil || p.Outcome == plans.Unchanged || p.Desired.Uncompared() == nil
}

// MayShare returns the entries that may share fields with a manager that gains these fields by the apply. These are the
// entries of versions that can't be compared here.
func (p *Planned) MayShare() []metav1.ManagedFieldsEntry {
	gains := func(c plans.OwnershipChange) bool { return !c.Gains.Difference(c.Shares).IsEmpty() }
	if p.Desired.Object == nil || !slices.ContainsFunc(p.Ownership, gains) {
		return nil
	}
	return p.OtherVersions(place.Unwrap(p.Plan.Object))
}

// Deletion is the effect of an apply on the deletion of its object; empty if the object is not being deleted.
type Deletion string

// The effects of an apply on a deletion.
const (
	Continues Deletion = "continues"
	Ends      Deletion = "ends" // the apply removes the last finalizer
)

// Deletion returns the effect of the apply on the deletion of the object.
func (p *Planned) Deletion() Deletion {
	live := p.Parent().Object
	metadata, _ := live["metadata"].(map[string]any)
	isImmediate := typed.Equal(metadata["deletionGracePeriodSeconds"], int64(0))
	switch {
	case document.TextAt(live, "deletionTimestamp") == "":
		return ""
	case isImmediate && hasFinalizers(live) && p.Outcome == plans.Changed && p.Parent() == p.Target &&
		!hasFinalizers(p.ObjectAfter()):
		return Ends
	}
	return Continues
}

// hasFinalizers reports whether an object has finalizers, including the finalizers in the spec of a Namespace.
func hasFinalizers(object map[string]any) bool {
	finalizers, _, _ := unstructured.NestedSlice(object, "metadata", "finalizers")
	if gvk, err := document.GVKOf(object); err == nil && gvk.GroupKind() == place.NamespaceKind {
		more, _, _ := unstructured.NestedSlice(object, "spec", "finalizers")
		finalizers = append(finalizers, more...)
	}
	return len(finalizers) > 0
}

// ObjectAfter returns the object after the apply: from the dry run if there was one, otherwise from the plan.
func (p *Planned) ObjectAfter() map[string]any {
	if p.Served != nil {
		return p.Served
	}
	r := place.Request{Kind: p.Kind, Types: p.Types, Apply: true, Subresource: p.Fields.Options().Subresource}
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

// MoveToApply moves the fields in the manager's Update entry of the live object to its Apply entry, if the manager owns
// fields by an Update. The plan is then made for the resulting object.
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
