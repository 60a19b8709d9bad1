package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

type handoverFlags struct {
	intentFlags
	fields    []string
	temporary string
	dryRun    bool
	confirm   view.Confirmation
	output    view.Output
}

func newHandover(env *process.Env) *cobra.Command {
	var flags handoverFlags
	cmd := &cobra.Command{
		Use:   "handover -f FILE|- --field PATH",
		Short: "Hand fields over to an autoscaler without removing them",
		Long: `Handover makes a manager give up fields, so that an autoscaler, or another
controller that updates the fields, can take them over. The fields stay in the
object, and are not set to their defaults. First, a temporary manager applies the
fields with their current values. Then, the manager of --field-manager applies its
manifest without the fields. When the autoscaler changes the fields, it takes them
from the temporary manager, whose entry is then empty and is removed. If the fields
are in list items, the entry also owns these items, and is not removed. Handover
then prints the command that drops the entry, so that later applies can remove the
items.

The manifest of -f may contain the fields. Remove them from the manifest afterwards,
because the manager's next apply must not contain them.

The live object is read from the same places as for plan (see tenure plan --help).
Handover shows what both applies do, and asks for confirmation before it sends them.
It first sends both to the server as dry runs: if the server rejects one, nothing is
written. With --live it prints the resulting object.

Exit status: 0 if both applies succeeded, or if nothing was written because the
manager's Apply entry owns none of the fields; 1 on any error, or if you did not
confirm.`,
		Example: `  tenure handover -f deployment.yaml --field-manager web --field .spec.replicas
  tenure handover -f deployment.yaml --field-manager web --field .spec.replicas \
    --live live.yaml > next.yaml`,
		Args: takesManifests,
		RunE: func(*cobra.Command, []string) error { return flags.handOverDocument() },
	}
	flags.add(env, cmd)
	cmd.Flags().StringArrayVar(&flags.fields, "field", nil,
		"the field at `PATH`, and all fields in it; may be given several times")
	cmd.Flags().StringVar(&flags.temporary, "temporary", "handover", "`NAME` of the temporary manager")
	addDryRun(cmd, &flags.dryRun, true, "show what would be done, and change nothing")
	cmd.Flags().BoolVarP(&flags.confirm.Yes, "yes", "y", false, "do not ask for confirmation")
	addOutput(env, cmd, &flags.output, "yaml", "json", "name")
	return cmd
}

func (f *handoverFlags) handOverDocument() error {
	if len(f.fields) == 0 {
		return errors.New("no fields: expected --field")
	}
	if !f.dryRun && f.live == nil {
		if err := f.confirm.CheckPossible(f.env); err != nil {
			return err
		}
	}
	return f.withIntents(process.NoStore, func(p place.Place, docs []document.Document) error {
		if len(docs) != 1 {
			return fmt.Errorf("-f: expected one document, got %d", len(docs))
		}
		w, err := f.options().Read(f.env.Context, p, docs[0])
		if err == nil {
			err = f.handOver(p, w)
		}
		var found conflicts.Conflicts
		if errors.As(err, &found) {
			report := conflictreport.Report{
				Object: w.Reference(), Manager: f.manager, Conflicts: view.HideConflicts(found),
			}
			if err := report.Render(f.env.Stderr, conflictreport.Style{}); err != nil {
				return err
			}
			err = fmt.Errorf("the apply without the fields has conflicts: resolve them first, see %s conflicts --help",
				programName(f.env))
		}
		if err != nil && !errors.Is(err, view.ErrDeclined) {
			view.ExplainDesired(f.env, w, err)
			err = errReported
		}
		return err
	})
}

func (f *handoverFlags) handOver(p place.Place, w *place.Desired) error {
	if w.Object == nil {
		return errors.New("the object does not exist")
	}
	fields, err := (&chosenFields{fields: f.fields}).existingFields(f.env, w.Target)
	if err != nil {
		return err
	}
	steps, err := f.steps(w, fields)
	if errors.Is(err, ownership.ErrNotApplied) && appliesNone(w, fields) {
		// This is no error: another manager may just have taken the fields, as in the fights that tenure watch reports.
		fmt.Fprintf(f.env.Stderr, "note: %s: %v\n", w.Title(), err)
		if f.dryRun || f.live == nil && f.output.Format == "" {
			return nil
		}
		return f.print(w.Stored().Object)
	}
	if err != nil {
		return err
	}
	stored, sent := w.Stored(), steps
	if stored != w {
		if sent, err = f.steps(stored, fields); err != nil {
			return err
		}
	}
	env, offline := f.env, f.live != nil
	out := env.Stderr
	if f.dryRun {
		out = env.Stdout
	}
	shown := view.PlanView{Palette: view.PaletteFor(env, out)}
	for i, step := range steps {
		planned, err := f.ask(p, w, step, sent[i].DryRun.Object)
		if err != nil {
			return fmt.Errorf("the apply of %q: %w", step.Manager, err)
		}
		fmt.Fprintf(out, "%s: apply %d of %d, by %q: %s\n", w.Title(), i+1, len(steps), step.Manager, planned.Outcome)
		shown.WriteEffects(out, planned)
	}
	if f.dryRun {
		return nil
	}
	if !offline {
		if err := f.confirm.Ask(env, fmt.Sprintf("Apply this to %s in %s?", w.Title(), p)); err != nil {
			return err
		}
	}
	object, err := f.applySteps(p, stored, sent)
	if err != nil {
		return err
	}
	if f.output.Format == "" && !offline {
		fmt.Fprintf(env.Stdout, "%s handed over\n", w.Title())
		f.noteItems(w, steps)
		return nil
	}
	return f.print(object)
}

// print prints the resulting object; the default format is yaml.
func (f *handoverFlags) print(object map[string]any) error {
	f.output.Format = cmp.Or(f.output.Format, "yaml")
	f.output.ManagedFields = f.output.ManagedFields || f.live != nil
	return f.output.Print(f.env.Stdout, []map[string]any{object}, false)
}

// appliesNone reports whether the manager has an Apply entry for the main resource that owns none of the fields.
func appliesNone(w *place.Desired, fields *fieldpath.Set) bool {
	entries, err := managedfields.Read(place.Wrap(w.Object))
	e := entries.Get(managedfields.KeyOf(w.Manager, metav1.ManagedFieldsOperationApply, "", ""))
	return err == nil && e != nil && e.Owned().AtOrBelow(fields).IsEmpty()
}

// steps returns the applies that make up the handover.
func (f *handoverFlags) steps(w *place.Desired, fields *fieldpath.Set) ([]ownership.Step, error) {
	live, intent := place.Wrap(w.Object), place.Wrap(w.Tree)
	steps, err := w.Mover(f.env.Now).Handover(f.env.Context, live, intent, w.Manager, fields, f.temporary)
	if errors.Is(err, ownership.ErrNotApplied) {
		lines, suggest := []string{"the fields were applied client-side:"}, f.suggest()
		for _, way := range planning.ClientSide(f.env.Context, w, fields) {
			lines = append(lines, way.Why+": "+suggest.Line(suggest.Arguments(way)))
		}
		if len(lines) > 1 {
			err = errors.New(strings.Join(lines, "\n  "))
		}
	}
	return steps, err
}

// ask sends the intent dryRun to the server as a dry run, so that the server rejects a step before the first write. The
// returned plan has the outcome of this dry run, but the ownership changes of the step's plan, because dryRun contains
// more fields than the step's intent. If the user may not apply, ask returns an error, because the step could not be
// written either.
func (f *handoverFlags) ask(
	p place.Place, w *place.Desired, step ownership.Step, dryRun map[string]any,
) (planning.Planned, error) {
	plan, asked := *step.Plan, w.With(dryRun)
	asked.Manager = step.Manager
	planned := planning.Planned{Desired: asked, Options: asked.PlanOptions(false)}
	if isServed, _ := w.IsServed(); isServed {
		_, err := planned.Ask(f.env.Context, p, "")
		switch {
		case err != nil:
			return planned, err
		case len(planned.Conflicts) > 0:
			return planned, planned.Conflicts
		case planned.Outcome == plans.Changed:
			plan.Outcome = plans.Changed
		case plan.Outcome == plans.Changed:
			plan.Outcome = plans.OwnershipOnly
		}
	}
	planned.Plan = &plan
	return planned, nil
}

// noteItems checks whether the temporary manager owns list items or map entries that the second apply still contains.
// An autoscaler takes over only the fields in these items. So the temporary manager keeps its entry, and no apply can
// remove the items. In this case, noteItems prints how to drop the entry.
func (f *handoverFlags) noteItems(w *place.Desired, steps []ownership.Step) {
	owned := w.Kind.Typ.FieldSet(steps[0].Intent.Object)
	around := owned.Difference(owned.Leaves()).Intersection(w.Kind.Typ.FieldSet(steps[1].Intent.Object))
	var items []fieldpath.Path
	for path := range around.All() {
		items = append(items, slices.Clone(path))
	}
	if len(items) > 0 {
		drop, suggest := advice.HandedItems(planning.ObjectsOf(w.Target), f.temporary, items), f.suggest()
		fmt.Fprintf(f.env.Stderr, "note: %s: %s\n", drop.Why, suggest.Line(suggest.Arguments(drop)))
	}
}

// applySteps sends the applies in order.
func (f *handoverFlags) applySteps(
	p place.Place, w *place.Desired, steps []ownership.Step,
) (object map[string]any, err error) {
	for i, step := range steps {
		options := cluster.WriteOptions{Manager: step.Manager}
		object, err = place.ApplyShown(f.env.Context, p, w.Target, step.Intent.Object, options)
		switch {
		case err != nil && i > 0:
			return nil, fmt.Errorf("apply %d of %d, by %q, failed; %q already owns the fields; run the same command "+
				"again to continue: %w", i+1, len(steps), step.Manager, f.temporary, err)
		case err != nil:
			return nil, err
		}
		w.Object = object // the base of the next step
	}
	return object, nil
}
