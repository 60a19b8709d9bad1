package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

type conflictsFlags struct {
	planFlags
	resolve string
	others  string
	fields  []string
	dryRun  bool
}

func newConflicts(env *process.Env) *cobra.Command {
	var flags conflictsFlags
	cmd := &cobra.Command{
		Use:   "conflicts -f FILE|DIR|-",
		Short: "Show the conflicts of an apply, and resolve them",
		Long: `Conflicts shows, for every document, the fields that an apply would change although
other managers own them. For each field, it shows the owner, the time of the owner's
entry, the live value and the value in the document. It also shows the ways out of
the conflicts, and what each way does.

--resolve chooses a way out:

  force     applies your values; only you own the fields from then on
  give-up   leaves the fields out of the intent; their values and owners stay
  share     puts the live values into the intent; you become an owner as well

Without --field, --resolve decides all conflicts. With --field, --resolve decides
only conflicts in the fields that --field names, and --others decides the remaining
conflicts. With --resolve, the command makes the resulting intent, asks for
confirmation, and applies the intent. As tenure plan does, it shows the fields that
then stay although the intent lacks them. -o yaml prints the intent, which can
replace your manifest. With --dry-run nothing is applied. With --live the intent is
only printed.

With several documents, documents without a conflict are only counted, unless a
policy decided conflicts; --show-unchanged and -o json list them.

With --policy FILE, the rules in FILE decide conflicts (see tenure policy --help).
Each decision is shown with its rule. Conflicts that no rule matches, and conflicts
that a rule refuses, remain. To apply the decisions, use tenure plan --apply. The
fields that are given up or shared can be printed for GitOps tools to ignore:
-o argocd prints ignoreDifferences of an Argo CD Application, -o flux prints ignore
rules for the drift detection of a Flux HelmRelease, and -o flux-kustomization
prints ignore rules of a Flux Kustomization.

Live objects are read from the same places as for tenure plan (see tenure plan
--help). In a cluster or a store, conflicts are found by server-side dry runs.
Values of Secrets are printed only in the intents that --resolve makes, and in the
log of -v 8 and higher.

Exit status: 0 if no conflict was found, or all conflicts are resolved; 2 on a
conflict; 3 on any error, or if you did not confirm; 4 if no conflict was found, but
the search was incomplete: you lack the permission to apply an object that would
change, or an object has entries of API versions other than the document's, which
only a server can compare. With several documents, the exit status is the first of
3, 2 and 4 that applies to any of them, otherwise 0.`,
		Example: `  tenure conflicts -f deployment.yaml --field-manager web

  # leave the fields in conflict to their owners, and save the resulting manifest
  tenure conflicts -f deployment.yaml --field-manager web \
    --resolve give-up --dry-run -o yaml > resolved.yaml

  # take over the image, and give up the other fields in conflict
  tenure conflicts -f deployment.yaml --field-manager web --resolve force \
    --field '.spec.template.spec.containers[name=web].image'`,
		Args: takesManifests,
		RunE: func(*cobra.Command, []string) error { return flags.showOrResolve() },
	}
	flags.add(env, cmd)
	flags.addSubresource(cmd)
	cmd.Flags().
		StringVar(&flags.resolve, "resolve", "", "`WAY` out of the conflicts: force, give-up or share")
	cmd.Flags().StringArrayVar(&flags.fields, "field", nil,
		"apply --resolve only to the field at `PATH` and the fields below it; may be given several times")
	cmd.Flags().StringVar(&flags.others, "others", string(conflicts.GiveUp),
		"`WAY` out of conflicts in fields that --field does not name")
	cmd.Flags().BoolVar(&flags.unchanged, "show-unchanged", false,
		"with several documents, also list documents without a conflict")
	flags.addPolicy(cmd)
	addDryRun(cmd, &flags.dryRun, true, "do not apply the result of --resolve")
	cmd.Flags().BoolVarP(&flags.confirm.Yes, "yes", "y", false, "do not ask for confirmation")
	addFormat(env, cmd, &flags.format, append([]string{"yaml", "json", "status"}, view.IgnoreFormats...)...)
	for _, name := range []string{"resolve", "others"} {
		completeChoices(env, cmd, name, waysOut...)
	}
	return withErrorStatus(statusFailed, cmd)
}

// waysOut has the values of --resolve and --others.
var waysOut = []string{string(conflicts.Force), string(conflicts.GiveUp), string(conflicts.Share)}

// rulesOfFlags returns a policy that decides as --resolve, --field and --others say.
func (f *conflictsFlags) rulesOfFlags() (*policy.Policy, error) {
	for _, flag := range [...][2]string{{"resolve", f.resolve}, {"others", f.others}} {
		if !slices.Contains(waysOut, flag[1]) {
			return nil, fmt.Errorf("--%s: expected one of %s, got %.40q", flag[0], waysOut, flag[1])
		}
	}
	if f.cmd.Flags().Changed("others") && len(f.fields) == 0 {
		return nil, errors.New("--others needs --field")
	}
	if len(f.fields) == 0 {
		return &policy.Policy{Rules: []policy.Rule{{Decision: conflicts.Decision(f.resolve)}}}, nil
	}
	out := &policy.Policy{}
	for _, text := range f.fields {
		out.Rules = append(out.Rules, policy.Rule{Fields: []string{text}, Decision: conflicts.Decision(f.resolve)})
	}
	out.Rules = append(out.Rules, policy.Rule{Decision: conflicts.Decision(f.others)})
	f.rulesFor = f.withReadings
	return out, nil
}

// withReadings returns the rules for the given conflicts. If the text of a --field names one field in conflict, the
// rule of this --field matches only that field. If the text names several fields, withReadings returns an error.
func (f *conflictsFlags) withReadings(found conflicts.Conflicts) (*policy.Policy, error) {
	var known []fieldpath.Path
	for _, c := range found {
		known = append(known, c.Path)
	}
	set, rules := fieldpath.NewSet(known...), slices.Clone(f.rules.Rules)
	for i, text := range f.fields {
		switch named := set.Find(text); len(named) {
		case 0: // the text may be a pattern
		case 1:
			rules[i].Fields = []string{policy.Exactly(named[0])}
		default:
			return nil, &fieldError{flag: "--field", text: text, found: named}
		}
	}
	return &policy.Policy{Rules: rules}, nil
}

func (f *conflictsFlags) showOrResolve() error {
	if err := f.check(); err != nil {
		return err
	}
	return f.withIntents(process.NoStore, func(p place.Place, docs []document.Document) error {
		planned, failed := f.planDocuments(p, docs)
		if f.resolve == "" {
			return f.print(planned, len(failed))
		}
		return f.resolveConflicts(p, planned, len(failed))
	})
}

// check checks the flags, and reads the rules of the policy or of --resolve.
func (f *conflictsFlags) check() (err error) {
	formats := []string{"yaml", "json"}
	if f.resolve == "" {
		formats = append([]string{"json", "status"}, view.IgnoreFormats...)
		for _, name := range []string{"field", "others", "dry-run", "yes"} {
			if f.cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s needs --resolve", name)
			}
		}
	}
	if err := checkFormat(f.format, formats...); err != nil {
		return err
	}
	switch {
	case f.resolve == "":
		f.rules, err = f.readPolicy()
	case f.policy != "":
		err = errors.New("--policy cannot be used with --resolve; apply the decisions of a policy with plan --apply")
	default:
		f.rules, err = f.rulesOfFlags()
	}
	switch {
	case err != nil:
		return err
	case f.rules == nil && slices.Contains(view.IgnoreFormats, f.format):
		return fmt.Errorf("-o %s needs --policy", f.format)
	case f.resolve != "" && !f.isOnlyShown():
		f.apply = true
		return f.confirm.CheckPossible(f.env)
	}
	return nil
}

// isOnlyShown reports whether --resolve shows its results without applying them.
func (f *conflictsFlags) isOnlyShown() bool { return f.dryRun || f.live != nil }

func (f *conflictsFlags) print(planned []planning.Planned, failed int) (err error) {
	if slices.Contains(view.IgnoreFormats, f.format) {
		err = view.WriteIgnoreRules(f.env, f.format, planned)
	} else {
		err = f.printConflicts(planned, failed)
	}
	switch {
	case err != nil:
		return err
	case failed > 0:
		return exitWith(statusFailed)
	case slices.ContainsFunc(planned, func(p planning.Planned) bool { return p.Outcome == plans.Conflict }):
		return exitWith(statusConflict)
	}
	return nil
}

func (f *conflictsFlags) printConflicts(planned []planning.Planned, failed int) error {
	ctx, env := f.env.Context, f.env
	shown := view.PlanView{Palette: view.PaletteFor(env, env.Stdout), Suggest: f.suggest()}
	documents, without, unknown := len(planned)+failed, 0, 0
	var values []any
	for _, p := range planned {
		if len(p.StringData()) > 0 {
			fmt.Fprintf(env.Stderr, "note: %s:\n", p.Title())
			shown.WriteStringData(env.Stderr, &p)
		}
		var err error
		switch hasConflict := p.Outcome == plans.Conflict; {
		case f.format == "json":
			var report conflictreport.Report
			report, err = shown.ReportOf(ctx, &p)
			values = append(values, struct {
				conflictreport.Report
				Decisions   []view.DecidedJSON  `json:"decisions,omitempty"`
				Deletion    planning.Deletion   `json:"deletion,omitempty"`
				Undecodable []advice.Suggestion `json:"undecodable,omitempty"`
			}{report, view.DecidedOf(&p), p.Deletion(), shown.Suggest.All(p.Undecodable)})
		case f.format == "status" && !hasConflict:
			values = append(values, metav1.Status{Status: metav1.StatusSuccess})
		case f.format == "status":
			values = append(values, p.Conflicts.Status())
		case hasConflict:
			err = shown.WriteConflicts(ctx, env.Stdout, &p)
		default:
			text := "no conflict"
			if p.KnowsConflicts() {
				without++
			} else {
				unknown++
				text = "conflicts are not known"
			}
			if documents == 1 || f.unchanged || !p.KnowsConflicts() || len(p.Decided) > 0 {
				fmt.Fprintf(env.Stdout, "%s: %s\n", p.Title(), text)
			}
			shown.WriteDecided(env.Stdout, &p)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case f.format == "" && documents > 1:
		notKnown := ""
		if unknown > 0 {
			notKnown = fmt.Sprintf(" %d not known,", unknown)
		}
		fmt.Fprintf(env.Stdout, "%d objects: %d with conflicts, %d without,%s %d failed\n", documents,
			len(planned)-without-unknown, without, notKnown, failed)
		return nil
	case f.format == "":
		return nil
	case documents == 1 && len(values) == 1:
		return view.Encode(env.Stdout, "json", values[0])
	}
	return view.Encode(env.Stdout, "json", values)
}

// resolveConflicts shows what the ways out do. If isOnlyShown returns false, it then asks for confirmation and applies
// the intents. At the end, it prints the intents.
func (f *conflictsFlags) resolveConflicts(p place.Place, planned []planning.Planned, failed int) error {
	env := f.env
	if failed > 0 {
		return exitWith(statusFailed)
	}
	if err := f.checkFields(planned); err != nil {
		return err
	}
	shown := view.PlanView{
		Palette: view.PaletteFor(env, env.Stderr), Applies: !f.isOnlyShown(), Suggest: f.suggest(),
	}
	for _, one := range planned {
		forced := ""
		if one.Options.Force {
			forced = ", with force"
		}
		if one.Desired.Object == nil {
			fmt.Fprintf(env.Stderr, "%s: created\n", one.Title())
			continue
		}
		fmt.Fprintf(env.Stderr, "%s: %s%s\n", one.Title(), one.Outcome, forced)
		shown.WriteEffects(env.Stderr, one)
		shown.WriteLeftovers(env.Stderr, &one)
	}
	if f.live != nil {
		f.format = cmp.Or(f.format, "yaml")
	}
	if !f.isOnlyShown() {
		if err := f.applyPlans(p, changesOf(planned), nil); err != nil {
			return err
		}
	}
	for i, one := range planned {
		switch {
		case f.format != "":
			if err := view.EncodeNext(env.Stdout, f.format, one.Manifest(one.Stored().Tree), i); err != nil {
				return err
			}
		case f.isOnlyShown():
			fmt.Fprintf(env.Stdout, "%s serverside-applied (dry run)\n", one.Title())
		}
	}
	return nil
}

// checkFields returns an error for each --field that decided no conflict of any document.
func (f *conflictsFlags) checkFields(planned []planning.Planned) (err error) {
	for i, text := range f.fields {
		isMet := slices.ContainsFunc(planned, func(p planning.Planned) bool {
			return slices.ContainsFunc(p.Decided, func(d planning.Decided) bool { return d.Rule == i })
		})
		if isMet {
			continue
		}
		isIn := func(fields func(planning.Planned) *fieldpath.Set) bool {
			return slices.ContainsFunc(planned, func(p planning.Planned) bool {
				return len(p.FieldsInParent(fields(p)).Find(text)) > 0
			})
		}
		switch {
		case isIn(func(p planning.Planned) *fieldpath.Set {
			var paths []fieldpath.Path
			for _, d := range p.Decided {
				paths = append(paths, d.Path)
			}
			return fieldpath.NewSet(paths...)
		}):
			err = errors.Join(err, fmt.Errorf("--field: %s is decided with another conflict, over a field that contains it "+
				"or is in it; name both fields", text))
		case isIn(func(p planning.Planned) *fieldpath.Set {
			return p.Kind.Typ.FieldSet(p.Tree).Union(p.Kind.Typ.FieldSet(p.Desired.Object))
		}):
			err = errors.Join(err, fmt.Errorf("--field: %s has no conflict; expected a field that conflicts lists", text))
		default:
			err = errors.Join(err, &fieldError{flag: "--field", text: text})
		}
	}
	return err
}
