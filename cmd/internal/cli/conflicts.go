package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

type conflictsFlags struct {
	intentFlags
	resolve string
	others  string
	fields  []string
	// unchanged lists the objects without conflicts, of several.
	unchanged bool
	dryRun    bool
	confirm   view.Confirmation
	format    string
}

// resolved is an intent with its conflicts resolved.
type resolved struct {
	*place.Desired
	*plans.Resolution
	intent map[string]any // of the Resolution, with the values of a Secret
}

func newConflicts(env *process.Env) *cobra.Command {
	var flags conflictsFlags
	cmd := &cobra.Command{
		Use:   "conflicts -f FILE|DIR|-",
		Short: "Show the conflicts of an apply, and resolve them",
		Long: `Conflicts shows, for every document, the fields of other managers that an apply
would change: their owners and since when, both values, the ways out, and what each
costs.

--resolve chooses a way out:

  force     your values; the fields become yours alone
  give-up   the intent without the fields: their values stay, and so do the owners
  share     the intent with their values: both own the fields from then on

It is for all conflicts, or for those of --field; --others is the way out of the
others. The command makes the resulting intent, asks, and applies it. -o yaml prints
the intent, to become your manifest. With --dry-run nothing is applied. With --live
the intent is only printed.

Of several documents, those without a conflict are counted, not listed, unless
--show-unchanged is given; -o json lists them.

Live objects are chosen as for plan, see tenure plan --help. The conflicts are those
of the server's dry run, where there is a server. Values of Secrets are printed only
in the intents of --resolve.

Exit status: 0 if there is no conflict, or none any more; 2 on a conflict; 3 on any
error, or if it was not confirmed; 4 if none is known, but the server could not be
asked about entries of other versions. With several documents, the first of 3, 2, 4.`,
		Example: `  tenure conflicts -f deployment.yaml --field-manager web

  # leave the replicas to their owner, and keep the manifest for that
  tenure conflicts -f deployment.yaml --field-manager web \
    --resolve give-up --dry-run -o yaml > resolved.yaml

  # take over the image, and give up the rest
  tenure conflicts -f deployment.yaml --field-manager web --resolve force \
    --field '.spec.template.spec.containers[name=web].image'`,
		Args: takesManifests,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.showOrResolve(env, cmd) },
	}
	flags.add(env, cmd)
	flags.addSubresource(cmd)
	cmd.Flags().
		StringVar(&flags.resolve, "resolve", "", "resolve the conflicts by this `WAY` out: force, give-up or share")
	cmd.Flags().StringArrayVar(&flags.fields, "field", nil,
		"only for the field at `PATH`, and all fields in it; may be given several times")
	cmd.Flags().StringVar(&flags.others, "others", conflicts.GiveUp.String(),
		"the `WAY` out of the conflicts that --field does not name")
	cmd.Flags().BoolVar(&flags.unchanged, "show-unchanged", false, "list objects without a conflict too, of several")
	addDryRun(cmd, &flags.dryRun, true, "apply nothing")
	cmd.Flags().BoolVarP(&flags.confirm.Yes, "yes", "y", false, "do not ask")
	addFormat(env, cmd, &flags.format, "yaml", "json", "status")
	for _, name := range []string{"resolve", "others"} {
		completeChoices(env, cmd, name, conflicts.Force.String(), conflicts.GiveUp.String(), conflicts.Share.String())
	}
	return withErrorStatus(statusFailed, cmd)
}

// ways parses --resolve and --others.
func (f *conflictsFlags) ways(cmd *cobra.Command) (way, others conflicts.Way, err error) {
	if err := way.UnmarshalText([]byte(f.resolve)); err != nil {
		return way, others, fmt.Errorf("--resolve: %w", err)
	}
	if err := others.UnmarshalText([]byte(f.others)); err != nil {
		return way, others, fmt.Errorf("--others: %w", err)
	}
	if cmd.Flags().Changed("others") && len(f.fields) == 0 {
		err = errors.New("--others needs --field")
	}
	return way, others, err
}

func (f *conflictsFlags) showOrResolve(env *process.Env, cmd *cobra.Command) error {
	if f.resolve != "" {
		return f.resolveConflicts(env, cmd)
	}
	for _, name := range []string{"field", "others", "dry-run", "yes"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s needs --resolve", name)
		}
	}
	if err := checkFormat(f.format, "json", "status"); err != nil {
		return err
	}
	p, docs, err := f.open(env, cmd, process.NoStore)
	if err != nil {
		return err
	}
	suggest := func(args ...string) string { return f.place.suggest(env, cmd, args...) }
	reports, failed := f.reports(cmd.Context(), env, p, docs, view.PlanView{Suggest: suggest})
	if err := errors.Join(f.print(env, reports, len(docs)), p.Close()); err != nil {
		return err
	}
	switch {
	case failed > 0:
		return &statusError{status: statusFailed}
	case slices.ContainsFunc(reports, func(r conflictreport.Report) bool { return len(r.Conflicts) > 0 }):
		return &statusError{status: statusConflict}
	}
	return nil
}

// reports returns a report for every document, also for those without conflicts, and the number of
// documents that have none because of an error.
func (f *conflictsFlags) reports(
	ctx context.Context, env *process.Env, p place.Place, docs []manifest.Document, notes view.PlanView,
) (reports []conflictreport.Report, failed int) {
	for _, read := range f.readAllDesired(ctx, env, p, docs) {
		w, err := read.desired, read.err
		if err == nil {
			var report conflictreport.Report
			live, intent := place.Wrap(w.Object), place.Wrap(w.Tree)
			var options plans.Options
			if options, err = f.asked(ctx, env, p, w); err == nil {
				report, err = conflictreport.New(ctx, w.Fields, live, intent, w.Title(), options)
			}
			report.Conflicts = view.HideConflicts(report.Conflicts)
			for i := range report.Ways {
				if secrets.Is(w.Tree) {
					report.Ways[i].Intent = nil // --resolve -o yaml prints it
				}
			}
			report.Object, report.Manager = w.Title(), w.Manager
			if planned := (&view.Planned{Desired: w}); len(planned.StringData()) > 0 {
				fmt.Fprintf(env.Stderr, "note: %s:\n", w.Title())
				notes.WriteStringData(env.Stderr, planned)
			}
			reports = append(reports, report)
		}
		if err != nil {
			view.ExplainDesired(env, w, err)
			failed++
		}
	}
	return reports, failed
}

// asked returns the options of plans of an intent, with the conflicts that the server finds. It is not asked about an
// apply that changes nothing.
func (f *conflictsFlags) asked(
	ctx context.Context, env *process.Env, p place.Place, w *place.Desired,
) (plans.Options, error) {
	options := w.PlanOptions(false)
	plan, err := plans.New(ctx, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), options)
	if err == nil && plan.Outcome == plans.Unchanged {
		return options, nil
	}
	if isServed, canDryRun := w.IsServed(); !isServed || !canDryRun {
		noteUncompared(env, w)
		return options, nil
	}
	planned := view.Planned{Desired: w, Options: options}
	if err == nil {
		planned.Plan = plan
	}
	isAllowed, err := planned.Ask(ctx, p, f.subresource)
	if !isAllowed {
		env.NoteUnread(fmt.Errorf("%s: you may not apply it: the server was not asked for conflicts", w.Title()))
		noteUncompared(env, w)
	}
	return planned.Options, err
}

func (f *conflictsFlags) print(env *process.Env, reports []conflictreport.Report, documents int) error {
	var values []any
	var calm int
	for _, report := range reports {
		switch {
		case f.format == "json":
			values = append(values, report)
		case f.format == "status" && len(report.Conflicts) == 0:
			values = append(values, metav1.Status{Status: metav1.StatusSuccess})
		case f.format == "status":
			values = append(values, report.Conflicts.Status())
		case len(report.Conflicts) == 0 && documents > 1 && !f.unchanged:
			calm++
		case len(report.Conflicts) == 0:
			calm++
			fmt.Fprintf(env.Stdout, "%s: no conflict\n", report.Object)
		default:
			if err := report.Render(env.Stdout, view.PaletteFor(env, env.Stdout).Conflicts()); err != nil {
				return err
			}
		}
	}
	if f.format == "" {
		if documents > 1 {
			fmt.Fprintf(env.Stdout, "%d objects: %d with conflicts, %d without, %d failed\n", documents,
				len(reports)-calm, calm, documents-len(reports))
		}
		return nil
	}
	var value any = values
	if documents == 1 && len(values) == 1 {
		value = values[0]
	}
	return view.Encode(env.Stdout, "json", value)
}

func (f *conflictsFlags) resolveConflicts(env *process.Env, cmd *cobra.Command) error {
	way, others, err := f.ways(cmd)
	if err == nil {
		err = checkFormat(f.format, "yaml", "json")
	}
	if err != nil {
		return err
	}
	offline := f.place.live != nil
	if !f.dryRun && !offline {
		if err := f.confirm.CheckPossible(env); err != nil {
			return err
		}
	}
	p, docs, err := f.open(env, cmd, process.NoStore)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	var list []resolved
	failed := false
	met := map[string]bool{} // of --field
	for _, read := range f.readAllDesired(ctx, env, p, docs) {
		w, err := read.desired, read.err
		if err == nil {
			r, with := resolved{Desired: w}, w.Stored()
			var options plans.Options
			if options, err = f.asked(ctx, env, p, w); err == nil {
				r.Resolution, err = f.resolution(ctx, w, way, others, met, options)
			}
			if err == nil {
				r.intent = r.Intent.Object
			}
			if err == nil && with != w {
				var of *plans.Resolution
				if of, err = f.resolution(ctx, with, way, others, met, options); err == nil {
					r.intent = of.Intent.Object
				}
			}
			if err == nil {
				list = append(list, r)
			}
		}
		if err != nil {
			view.ExplainDesired(env, w, err)
			failed = true
		}
	}
	for _, text := range f.fields {
		if !met[text] && !failed {
			err = errors.Join(err, &fieldError{text: text})
		}
	}
	if err == nil && !failed {
		failed, err = f.applyResolved(ctx, env, p, list, offline)
	}
	err = errors.Join(err, p.Close())
	if err == nil && failed {
		return &statusError{status: statusFailed}
	}
	return err
}

// resolution decides the conflicts of an intent, and sets met for the paths of --field that are among
// them: with several documents, a path does not have to be in each.
func (f *conflictsFlags) resolution(
	ctx context.Context, w *place.Desired, way, others conflicts.Way, met map[string]bool, options plans.Options,
) (*plans.Resolution, error) {
	live, intent := place.Wrap(w.Object), place.Wrap(w.Tree)
	var chosen *fieldpath.Set
	if len(f.fields) > 0 {
		plan, err := plans.New(ctx, w.Fields, live, intent, options)
		if err != nil {
			return nil, err
		}
		for _, text := range f.fields {
			fields, err := namedFields([]string{text}, plan.Conflicts.Paths())
			var none *fieldError
			if errors.As(err, &none) && len(none.found) == 0 {
				continue
			}
			if err != nil {
				return nil, err
			}
			met[text] = true
			chosen = chosen.Union(fields)
		}
	}
	return plans.Resolve(ctx, w.Fields, live, intent, func(c conflicts.Conflict) conflicts.Way {
		if len(f.fields) == 0 || isUnder(chosen, c.Path) {
			return way
		}
		return others
	}, options)
}

// isUnder reports whether a path, or one above it, is in a set.
func isUnder(set *fieldpath.Set, path fieldpath.Path) bool {
	for i := range path {
		if set.Has(path[:i+1]) {
			return true
		}
	}
	return false
}

// applyResolved shows what the ways out do, asks, and applies them.
func (f *conflictsFlags) applyResolved(
	ctx context.Context, env *process.Env, p place.Place, list []resolved, offline bool,
) (failed bool, err error) {
	shown := view.PlanView{Palette: view.PaletteFor(env, env.Stderr)}
	for _, r := range list {
		planned := view.Planned{Desired: r.Desired.With(r.intent), Plan: r.Plan, Options: plans.Options{Force: r.Force}}
		if isServed, canDryRun := r.IsServed(); isServed && canDryRun && r.Plan.Outcome != plans.Unchanged {
			if _, err := planned.Ask(ctx, p, f.subresource); err != nil {
				view.ExplainDesired(env, r.Desired, err)
				return true, nil
			}
		}
		forced := ""
		if r.Force {
			forced = ", with force"
		}
		fmt.Fprintf(env.Stderr, "%s: %s%s\n", r.Title(), planned.Outcome, forced)
		shown.WriteEffects(env.Stderr, planned)
	}
	if !f.dryRun && !offline {
		question := fmt.Sprintf("Apply this to %s in %s?", printable.Counted(len(list), "object", "objects"), p)
		if err := f.confirm.Ask(env, question); err != nil {
			return true, err
		}
	}
	format := f.format
	if offline && format == "" {
		format = "yaml"
	}
	for i, r := range list {
		var err error
		if !f.dryRun && !offline {
			_, err = place.ApplyShown(ctx, p, r.Target, r.intent, cluster.WriteOptions{
				Manager: r.Desired.Manager, Force: r.Force, Subresource: f.subresource,
			})
		}
		switch {
		case err != nil:
			view.ExplainDesired(env, r.Desired, err)
			failed = true
		case format != "":
			err = view.EncodeNext(env.Stdout, format, r.Manifest(r.intent), i)
		case f.dryRun:
			_, err = fmt.Fprintf(env.Stdout, "%s serverside-applied (dry run)\n", printable.Text(r.Reference()))
		default:
			_, err = fmt.Fprintf(env.Stdout, "%s serverside-applied\n", printable.Text(r.Reference()))
		}
		if err != nil && !failed {
			return true, err
		}
	}
	return failed, nil
}
