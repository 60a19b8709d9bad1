package ownership

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Step is one apply in a handover.
type Step struct {
	// Manager applies Intent, without force.
	Manager string
	Intent  *unstructured.Unstructured
	// Plan is the plan of this apply to the object that results from the previous step.
	Plan *plans.Plan
	// DryRun is an intent of Manager for a dry run before the previous step is applied. This dry run results in the
	// same object as the step, because DryRun also has the fields that the previous step keeps. So a server can dry-run
	// each step before the first one is applied. In the first step, DryRun is Intent itself. In the second step, DryRun
	// and Intent may share memory.
	DryRun *unstructured.Unstructured
}

// ErrNotApplied means that a manager does not own the fields of a [Mover.Handover] through an Apply. Then no handover
// is needed, because the manager's server-side applies can't remove the fields. Its client-side applies can.
var ErrNotApplied = errors.New("it is enough to remove the field from its manifest, because the value stays")

// notApplied is an ErrNotApplied with the reason.
type notApplied struct{ reason error }

func (e notApplied) Error() string        { return e.reason.Error() + "; " + ErrNotApplied.Error() }
func (e notApplied) Is(target error) bool { return target == ErrNotApplied }
func (e notApplied) Unwrap() error        { return e.reason }

// Handover returns two applies. After these applies, manager no longer owns the given fields, so an autoscaler or
// another updater can take them over. The fields exist in the object at all times, so the server never sets their
// defaults. The two applies are:
//
//  1. The manager temporary applies the fields with their live values, and then owns them together with manager. This
//     apply also has the fields that temporary already owns, for example from an earlier handover.
//  2. manager applies its intent without the fields. The fields stay because temporary owns them.
//
// Then the first update of the autoscaler that changes the fields takes them from temporary. An autoscaler that already
// owns the fields shares them with temporary; use [Drop] to remove temporary. If the fields are in a list item,
// temporary also owns the item, and keeps it: use [Drop] so that applies can remove the item. If you may patch managed
// fields, a [Transfer] to a manager name that never applies has the same effect without temporary.
//
// applied is the current intent of manager, with or without the fields; their values are ignored. live must have all
// the fields, and manager must own them. The fields are selected as in a [Move]. The applies are for the main resource.
func (m Mover) Handover(ctx context.Context, live, applied runtime.Object, manager string, fields *fieldpath.Set,
	temporary string) ([]Step, error) {
	if temporary == manager {
		return nil, fmt.Errorf("manager %q can't hand over to itself", manager)
	}
	for _, name := range []string{manager, temporary} {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	e, err := m.Edit(ctx, live)
	if err != nil {
		return nil, err
	}
	key := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", "")
	if _, err := e.selected(key); err != nil {
		for i := range e.Entries {
			if k := e.Entries[i].Key; k.Manager == manager && k.Operation == key.Operation {
				return nil, fmt.Errorf("manager %q applies only through %q; expected a manager that applies through "+
					"the main resource", manager, k.Subresource)
			}
		}
		return nil, notApplied{err}
	}
	entries, err := e.readable(key)
	if err != nil {
		return nil, err
	}
	err = checkFields(fields, false, fmt.Sprintf("manager %q owns", manager), entries[0].Owned())
	version := applied.GetObjectKind().GroupVersionKind().GroupVersion().String()
	switch {
	case errors.Is(err, errNothing) && entries[0].APIVersion != version:
		err = fmt.Errorf("%w at %s; apply the whole intent at %s first", err, entries[0].APIVersion, version)
	case errors.Is(err, errNothing):
		err = notApplied{err}
	}
	if err != nil {
		return nil, err
	}
	fm, err := e.Manager(version, "")
	if err != nil {
		return nil, err
	}
	existing, err := fm.FieldSet(ctx, live)
	if err != nil {
		return nil, err
	}
	if err := checkFields(fields, false, "the object has", existing); err != nil {
		return nil, err
	}
	kept := existing.AtOrBelow(fields)
	if r := e.Entries.Get(managedfields.KeyOf(temporary, metav1.ManagedFieldsOperationApply, "", "")); r != nil {
		if _, err := r.FieldSet(); err != nil {
			return nil, fmt.Errorf("manager %q: %w", temporary, err)
		}
		if r.APIVersion != version {
			return nil, fmt.Errorf("manager %q applies at %s, expected %s: hand over to another temporary manager",
				temporary, r.APIVersion, version)
		}
		kept = kept.Union(existing.Intersection(r.Owned()))
	}
	handed, err := fm.Extract(ctx, live, kept)
	if err != nil {
		return nil, err
	}
	less, err := plans.LeaveOut(ctx, fm, applied, fields)
	if err != nil {
		return nil, err
	}
	values, err := fm.Extract(ctx, live, existing.AtOrBelow(fields))
	if err != nil {
		return nil, err
	}
	t, err := e.Type(version)
	if err != nil {
		return nil, err
	}
	whole, err := t.Merge(less.Object, values.Object, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	if err != nil {
		return nil, err
	}
	tree, _ := whole.Value.(map[string]any)
	steps := []Step{
		{Manager: temporary, Intent: handed, DryRun: handed},
		{Manager: manager, Intent: less, DryRun: &unstructured.Unstructured{Object: tree}},
	}
	moved := live
	for i := range steps {
		step := &steps[i]
		options := m.Plan
		options.Manager = step.Manager
		if step.Plan, err = plans.New(ctx, fm, moved, step.Intent, options); err != nil {
			return nil, fmt.Errorf("the apply of %q: %w", step.Manager, err)
		}
		if step.Plan.Outcome == plans.Conflict {
			return nil, fmt.Errorf("the apply of %q: %w", step.Manager, step.Plan.Conflicts)
		}
		moved = step.Plan.Object
		left, err := fm.FieldSet(ctx, moved)
		if err != nil {
			return nil, err
		}
		for p := range kept.Difference(left).All() {
			return nil, fmt.Errorf("%s: would be removed by the apply of %q", p, step.Manager)
		}
	}
	return steps, nil
}
