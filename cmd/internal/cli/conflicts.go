package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
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

With --policy, the rules of a file decide conflicts, see tenure policy --help. Each
is shown with its rule, and those that no rule decides remain. plan --apply applies
what was decided. What is given up or shared is printed for others to ignore: by
-o argocd as ignoreDifferences of an Application, by -o flux as rules for the drift
detection of a HelmRelease, by -o flux-kustomization as rules of a Kustomization.

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
	flags.addPolicy(cmd)
	addDryRun(cmd, &flags.dryRun, true, "apply nothing")
	cmd.Flags().BoolVarP(&flags.confirm.Yes, "yes", "y", false, "do not ask")
	addFormat(env, cmd, &flags.format, "yaml", "json", "status", "argocd", "flux", "flux-kustomization")
	for _, name := range []string{"resolve", "others"} {
		completeChoices(env, cmd, name, conflicts.Force.String(), conflicts.GiveUp.String(), conflicts.Share.String())
	}
	return withErrorStatus(statusFailed, cmd)
}

// rules returns --resolve, --field and --others as a policy.
func (f *conflictsFlags) rules(cmd *cobra.Command) (*policy.Policy, error) {
	decisions := map[string]policy.Decision{
		conflicts.Force.String(): policy.Force, conflicts.GiveUp.String(): policy.GiveUp, conflicts.Share.String(): policy.Share,
	}
	for flag, way := range map[string]string{"resolve": f.resolve, "others": f.others} {
		if err := new(conflicts.Way).UnmarshalText([]byte(way)); err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if cmd.Flags().Changed("others") && len(f.fields) == 0 {
		return nil, errors.New("--others needs --field")
	}
	if len(f.fields) == 0 {
		return &policy.Policy{Rules: []policy.Rule{{Decision: decisions[f.resolve]}}}, nil
	}
	out := &policy.Policy{}
	for _, text := range f.fields { // the first dot is optional
		if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") {
			text = "." + text
		}
		out.Rules = append(out.Rules, policy.Rule{Fields: []string{text}, Decision: decisions[f.resolve]})
	}
	out.Rules = append(out.Rules, policy.Rule{Decision: decisions[f.others]})
	return out, nil
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
	if err := checkFormat(f.format, "json", "status", "argocd", "flux", "flux-kustomization"); err != nil {
		return err
	}
	rules, err := f.readPolicy(env)
	if err == nil && rules == nil && slices.Contains([]string{"argocd", "flux", "flux-kustomization"}, f.format) {
		err = fmt.Errorf("-o %s needs --policy", f.format)
	}
	if err != nil {
		return err
	}
	p, docs, err := f.open(env, cmd, process.NoStore)
	if err != nil {
		return err
	}
	suggest := func(args ...string) string { return f.place.suggest(env, cmd, args...) }
	shown := view.PlanView{Palette: view.PaletteFor(env, env.Stdout), Suggest: suggest}
	planned, failed := f.planned(cmd.Context(), env, p, docs, rules)
	if err := errors.Join(f.print(cmd.Context(), env, shown, planned, len(docs)), p.Close()); err != nil {
		return err
	}
	switch {
	case failed > 0:
		return &statusError{status: statusFailed}
	case slices.ContainsFunc(planned, func(p view.Planned) bool { return p.Outcome == plans.Conflict }):
		return &statusError{status: statusConflict}
	}
	return nil
}

// planned returns a plan for every document, with the conflicts that the server finds, decided by rules, and the number of
// documents that have none because of an error.
func (f *conflictsFlags) planned(
	ctx context.Context, env *process.Env, p place.Place, docs []manifest.Document, rules *policy.Policy,
) (planned []view.Planned, failed int) {
	for _, read := range f.readAllDesired(ctx, env, p, docs) {
		one, err := view.Planned{Desired: read.desired}, read.err
		if err == nil {
			err = f.find(ctx, env, p, &one)
		}
		if err == nil {
			err = one.Decide(ctx, p, rules, f.subresource)
		}
		if err != nil {
			view.ExplainDesired(env, one.Desired, err)
			failed++
			continue
		}
		planned = append(planned, one)
	}
	return planned, failed
}

// reportOf returns the report of the conflicts of a plan.
func reportOf(ctx context.Context, one view.Planned) (conflictreport.Report, error) {
	out, err := conflictreport.New(ctx, one.Fields, place.Wrap(one.Desired.Object), place.Wrap(one.Tree), one.Title(), one.Options)
	out.Conflicts = view.HideConflicts(out.Conflicts)
	for i := range out.Ways {
		if secrets.Is(one.Tree) {
			out.Ways[i].Intent = nil // --resolve -o yaml prints it
		}
	}
	return out, err
}

func (f *conflictsFlags) print(
	ctx context.Context, env *process.Env, shown view.PlanView, planned []view.Planned, documents int,
) error {
	switch f.format {
	case "argocd":
		return view.Encode(env.Stdout, "yaml", view.ArgoCD(planned))
	case "flux":
		return view.Encode(env.Stdout, "yaml", view.Flux(env.Stderr, planned, false))
	case "flux-kustomization":
		return view.Encode(env.Stdout, "yaml", view.Flux(env.Stderr, planned, true))
	}
	var values []any
	var calm int
	for _, one := range planned {
		if len(one.StringData()) > 0 {
			fmt.Fprintf(env.Stderr, "note: %s:\n", one.Title())
			shown.WriteStringData(env.Stderr, &one)
		}
		report, err := reportOf(ctx, one)
		switch hasConflict := one.Outcome == plans.Conflict; {
		case err != nil:
		case f.format == "json":
			values = append(values, struct {
				conflictreport.Report
				Decisions []view.DecidedJSON `json:"decisions,omitempty"`
			}{report, one.DecidedJSON()})
		case f.format == "status" && !hasConflict:
			values = append(values, metav1.Status{Status: metav1.StatusSuccess})
		case f.format == "status":
			values = append(values, one.Conflicts.Status())
		case hasConflict:
			err = shown.WriteConflicts(env.Stdout, &one, report)
		default:
			calm++
			if documents == 1 || f.unchanged {
				fmt.Fprintf(env.Stdout, "%s: no conflict\n", one.Title())
			}
			shown.WriteDecided(env.Stdout, &one)
		}
		if err != nil {
			return err
		}
	}
	if f.format == "" {
		if documents > 1 {
			fmt.Fprintf(env.Stdout, "%d objects: %d with conflicts, %d without, %d failed\n", documents,
				len(planned)-calm, calm, documents-len(planned))
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
	rules, err := f.rules(cmd)
	if err == nil {
		err = checkFormat(f.format, "yaml", "json")
	}
	if err == nil && f.policy != "" {
		err = errors.New("--policy does not go with --resolve: plan --apply applies what a policy decides")
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
	planned, failed := f.planned(ctx, env, p, docs, rules)
	for i, text := range f.fields { // with several documents, a path does not have to be in each
		isMet := slices.ContainsFunc(planned, func(one view.Planned) bool {
			return slices.ContainsFunc(one.Decided, func(d view.Decided) bool { return d.Rule == i })
		})
		if !isMet && failed == 0 {
			err = errors.Join(err, &fieldError{text: text})
		}
	}
	switch {
	case failed > 0:
		err = &statusError{status: statusFailed}
	case err == nil:
		err = f.applyResolved(ctx, env, p, planned, f.dryRun || offline)
	}
	return errors.Join(err, p.Close())
}

// applyResolved shows what the ways out do, asks and applies them unless they are only shown, and prints the intents.
func (f *conflictsFlags) applyResolved(
	ctx context.Context, env *process.Env, p place.Place, list []view.Planned, isOnlyShown bool,
) error {
	shown := view.PlanView{Palette: view.PaletteFor(env, env.Stderr)}
	for _, r := range list {
		forced := ""
		if r.Options.Force {
			forced = ", with force"
		}
		fmt.Fprintf(env.Stderr, "%s: %s%s\n", r.Title(), r.Outcome, forced)
		shown.WriteEffects(env.Stderr, r)
	}
	format := f.format
	if f.place.live != nil && format == "" {
		format = "yaml"
	}
	if !isOnlyShown {
		apply := planFlags{intentFlags: f.intentFlags, confirm: f.confirm, format: format}
		if err := apply.applyPlans(ctx, env, p, list, nil); err != nil {
			return err
		}
	}
	for i, r := range list {
		switch {
		case format != "":
			if err := view.EncodeNext(env.Stdout, format, r.Manifest(r.Stored().Tree), i); err != nil {
				return err
			}
		case isOnlyShown:
			fmt.Fprintf(env.Stdout, "%s serverside-applied (dry run)\n", r.Title())
		}
	}
	return nil
}
