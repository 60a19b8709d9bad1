package cli

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/applications"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
)

type planFlags struct {
	intentFlags
	pruning       pruneFlags
	offline       bool
	apply         bool // the plans will be applied
	confirm       view.Confirmation
	managedFields bool
	unchanged     bool
	summary       bool
	drift         bool
	format        string
	rules         *policy.Policy
	// rulesFor returns the policy for the conflicts of one object. If rulesFor is nil, the policy in rules applies to
	// all objects.
	rulesFor func(conflicts.Conflicts) (*policy.Policy, error)
	moves    bool // plan client-side applied objects as if moved to server-side apply
}

func newPlan(env *process.Env) *cobra.Command {
	flags := planFlags{confirm: view.Confirmation{Preview: "without --apply"}}
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR|-",
		Short: "Show what an apply would do",
		Long: `Plan shows the outcome of an apply for every document: unchanged, a change of
ownership, a change of the object, or a conflict. It lists the fields that would
change, and the fields that each manager would gain, share, lose or remove. Nothing
is written without --apply.

Plan reads the live objects from the cluster, from the store of --store, or from the
files of --live.

All documents are planned as if applied together, so a document may use a kind or a
namespace that another document creates. With --store, the document that creates a
kind must precede the documents that use it. In a cluster, the namespace of a
document must exist, or another document must create it; otherwise, the plan reports
an error, because the apply would fail. (kubectl apply accepts objects of a new kind
only in a second run.)

The plan assumes that the server sets the defaults of the schema. For built-in
kinds, it also assumes that 1000m equals 1, and that an empty list equals a missing
list. With --plain, the plan makes none of these assumptions. The outcome
"unchanged" means that the object and the owners of its fields stay the same; a
server may still store the same object once more, with another resourceVersion.

An apply that would change something is sent to the server as a dry run, so that the
plan includes validation and admission. No dry run is sent if you set --offline or
--live; if you may not patch the object (see exit status 4 below); or if the input
creates the object's namespace, or creates or changes the definition of its kind. A
dry run is ignored if it fails because the Role of a RoleBinding, or the class or
ServiceAccount of a Pod, does not exist until the input is applied.

With several documents, unchanged documents are only counted, unless you set
--show-unchanged, -o yaml, -o json or -o ndjson. With -o ndjson, the plan of each
document is one line. --summary prints only the counts, by kind. -o diff shows
differences as kubectl diff does; if KUBECTL_EXTERNAL_DIFF is set, it runs the
program that this variable names. -o html writes a page with changes, conflicts, and
the owners of each line, for reviewers or as an artifact of CI. Except with -o html,
--apply or KUBECTL_EXTERNAL_DIFF, plans are printed as soon as they are made, and
are not kept in memory.

If the manifest lacks a field that an Update entry owns, an apply does not remove
the field. Client-side kubectl apply and Helm 3, for example, leave such entries.
The plan names such a field, and the command that allows the manager to remove it.
It considers only entries at the document's API version, which belong to the manager
itself, to a command of kubectl such as kubectl edit, or to a manager that also owns
a field of the manifest. Other updaters may be controllers; only --drift lists their
fields.

If kubectl apply set fields, kubectl apply --server-side does more than other
programs do, whatever the manager: after the apply, it moves these fields to the
manager and applies again, which removes the fields that the manifest lacks. The
plan shows the changes of this second apply; the outcome does not include them. If a
plan for the manager kubectl is applied by --apply, which moves no fields, it shows
the command that moves them.

With --prune, the plan also lists the objects that --apply would delete because they
are no longer in the input. These objects are in the namespaces of the input, and
were applied by kubectl apply or by the manager, even if others apply them as well.
They have the labels of -l or, with --all, any labels. The plan names all managers
that own fields of these objects outside of the status, because the deletion takes
the objects from these managers, too. The plan considers the kinds that kubectl
apply --prune deletes, or the kinds that --prune-allowlist names. (kubectl apply
--prune itself deletes only objects that kubectl apply applied.)

With --prune --app, the plan instead lists the objects of an application that are
not in the input. Notes name the objects that Argo CD, Flux or Helm would keep, and
the reasons, such as the option Prune=false or another owner. For an ApplySet, the
plan lists the members that kubectl apply --prune --applyset deletes: members in the
namespaces and of the kinds that the parent of the ApplySet names. The plan adds the
ApplySet's label to the documents, but does not change the parent. So --apply
applies nothing if an object that would change has a kind or namespace that the
parent does not name.

Argo CD, Flux and Helm add labels and annotations to each object that they apply,
such as the name of the application. If --field-manager is one of their managers
(argocd-controller, kustomize-controller, helm-controller, flux-operator, helm), the
plan adds the labels and annotations that a document lacks. Their values come from
the live object or from the application of --app.

With --policy FILE, the rules in FILE decide conflicts (see tenure policy --help).
The plan shows each decision with its rule, and what the apply would do after these
decisions. Conflicts that no rule matches, and conflicts that a rule refuses,
remain.

With --drift, the plan also lists drift: fields and list items of the live objects
that the manifests lack, and that only managers without permission own. For each
field or item, it shows the value, the owners, the times of the owners' entries, and
the commands that end the drift. The permissions of the policy say which manager may
own which fields; a manager that the policy does not name may own nothing. Fields
that components of the control plane own, fields written through the status
subresource, and the annotation of client-side apply are not drift. Unowned fields
are listed separately. A default that only Update entries own is not drift.

Values of Secrets are not shown. A value that the server chooses with each write,
such as a node port that no manifest sets, is shown as (set by the server).

With --apply, the command asks for confirmation and applies the plan, but only if
the exit status of the plan would be 0 or 1 (see below). Two documents for the same
object are then an error. The server rejects the apply of an object that has changed
since it was planned. (For the manager kubectl and an object with the annotation of
client-side apply, the command itself checks this, just before the apply.)
Namespaces and CustomResourceDefinitions are applied first, one by one. Then objects
that admission reads, such as Roles and StorageClasses, are applied concurrently;
then all others; then webhooks and admission policies. A failed apply does not stop
the others. With --prune, the command then deletes the objects that are listed as
pruned, unless an apply failed. The exit status of --apply is 0 if everything was
applied, or if there was nothing to apply.

Exit status: 0 if nothing would change; 1 if an object or the ownership of a field
would change, even if only the second apply of kubectl changes it, an object would
be deleted, or something drifts; 2 on a conflict; 3 on any error; 4 if there is no
conflict and no error, but the plan is incomplete: you lack the permission to apply
an object that would change; an object has entries of API versions other than the
document's, which only the server can compare; or --drift could not compare an
object. With several documents, the exit status is the first of 3, 2, 4 and 1 that
applies to any of them.`,
		Example: `  # what would change in the cluster?
  tenure plan -f deployment.yaml --field-manager web
  KUBECTL_EXTERNAL_DIFF=meld tenure plan -f manifests/ -o diff

  # in a pipeline: apply the plan, unless it has conflicts or errors
  tenure plan -f manifests/ --field-manager web --apply --yes

  # without a cluster
  kubectl get -f manifests/ -o yaml --show-managed-fields > live.yaml
  tenure plan -f manifests/ --live live.yaml --field-manager web -o json`,
		Args: takesManifests,
		RunE: func(*cobra.Command, []string) error { return flags.printPlans() },
	}
	flags.add(env, cmd)
	flags.addSubresource(cmd)
	flags.addPolicy(cmd)
	flags.pruning.add(&flags.placeFlags)
	cmd.Flags().BoolVar(&flags.plain, "plain", false,
		"compare literally, as for custom resources without defaults: no defaults are set, and 1000m differs from 1")
	cmd.Flags().BoolVar(&flags.offline, "offline", false, "plan without dry runs of the server")
	cmd.Flags().BoolVar(&flags.force, "force-conflicts", false,
		"plan an apply that takes over the fields in conflict; cannot be used with --policy")
	cmd.Flags().BoolVar(&flags.managedFields, "show-managed-fields", false,
		"include metadata.managedFields in -o diff")
	cmd.Flags().BoolVar(&flags.unchanged, "show-unchanged", false,
		"list unchanged objects too, if there are several objects")
	cmd.Flags().BoolVar(&flags.summary, "summary", false, "only count the objects, by kind and outcome")
	cmd.Flags().BoolVar(&flags.drift, "drift", false,
		"also list fields that the manifests lack and that only managers without permission own")
	cmd.Flags().BoolVar(&flags.apply, "apply", false, "ask for confirmation, and apply the plan")
	cmd.Flags().BoolVarP(&flags.confirm.Yes, "yes", "y", false, "do not ask for confirmation")
	addFormat(env, cmd, &flags.format, "yaml", "json", view.Lines, "diff", "html") // formats that view.Plans knows
	return withErrorStatus(statusFailed, cmd)
}

// checkFlags returns an error for flags that cannot be combined.
func (f *planFlags) checkFlags() error {
	switch {
	case f.apply && (f.live != nil || f.format != "" || f.offline):
		return errors.New("--apply cannot be used with --live, --output or --offline")
	case f.confirm.Yes && !f.apply:
		return errors.New("--yes needs --apply")
	case f.drift && (f.apply || f.subresource != "" || f.format == "diff"):
		return errors.New("--drift cannot be combined with --apply, --subresource or -o diff")
	case f.summary && (f.unchanged || f.format == "diff" || f.format == "html"):
		return errors.New("--summary cannot be used with --show-unchanged, -o diff or -o html")
	case f.apply:
		return f.confirm.CheckPossible(f.env)
	}
	return nil
}

// printPlans plans the documents, and prints the plans. With --apply, it also applies them.
func (f *planFlags) printPlans() error {
	// A plan makes little garbage and the process ends soon, so fewer garbage collections save a fifth of the time. The
	// memory limit keeps this from costing much memory.
	if f.packs = true; !f.apply && f.format != "html" { // both keep all plans until the end
		defer debug.SetGCPercent(debug.SetGCPercent(400))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), planMemory)))
	}
	if err := f.checkFlags(); err != nil {
		return err
	}
	candidates, prunes, err := f.pruning.check(f.selector)
	if err != nil {
		return err
	}
	if f.rules, err = f.readPolicy(); err != nil {
		return err
	}
	return f.withIntents(process.NoStore, func(p place.Place, docs []document.Document) error {
		return f.planIn(p, docs, candidates, prunes)
	})
}

// planMemory is a soft limit for the memory of a plan, for any number of objects.
const planMemory = 256 << 20

// planIn does the work of printPlans in an open place.
func (f *planFlags) planIn(
	p place.Place, docs []document.Document, candidates place.Candidates, prunes bool,
) (err error) {
	var app *applications.Application
	if f.pruning.app != "" {
		if app, err = f.application(p); err != nil {
			return err
		}
		f.owner = app
	}
	out := f.printer(len(docs))
	var changes []planning.Planned // for --apply
	var unnamed []*place.Target    // see checkNamed
	candidates.Except = map[place.Key]bool{}
	worst := plans.Unchanged
	failed := f.eachPlan(p, docs, func(one *planning.Document) {
		switch {
		case err != nil:
		case one.Err != nil:
			err = out.Fail(one)
		default:
			err = out.Add(&one.Planned)
		}
		if one.Err != nil {
			return
		}
		worst = max(worst, one.Outcome)
		if prunes {
			candidates.Except[place.KeyOf(one.Target)] = true
		}
		if app != nil && app.ApplySet != nil && one.Outcome != plans.Unchanged && !app.ApplySet.Names(one.Target) {
			unnamed = append(unnamed, one.Target)
		}
		if f.apply && one.Outcome != plans.Unchanged {
			changes = append(changes, planning.Planned{
				Desired: one.Desired, Options: one.Options, Plan: &plans.Plan{Outcome: one.Outcome},
			})
		}
	})
	switch {
	case err != nil:
		return err
	case prunes && failed > 0:
		fmt.Fprintln(f.env.Stderr, "note: some documents failed, so objects to prune are not listed")
	case prunes:
		if out.Pruned, err = f.pruned(p, candidates, app); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	if prunes && app == nil && len(out.Pruned) > 0 && !f.apply {
		fmt.Fprintln(f.env.Stderr, "note: kubectl apply --server-side --prune prunes ApplySets only; plan --apply deletes "+
			"what is listed as pruned")
	}
	if err := out.Close(); err != nil {
		return err
	}
	notNamed := f.checkNamed(unnamed)
	if notNamed != nil && !f.apply {
		fmt.Fprintf(f.env.Stderr, "note: --app %s: plan --apply cannot apply this: %v\n", f.pruning.app, notNamed)
	}
	drifting, _ := out.Drifting()
	status := f.exitStatus(worst, len(out.Pruned)+drifting+out.Migrated(), failed)
	if !f.apply || status > statusChanges {
		return exitWith(status)
	}
	if notNamed != nil {
		return fmt.Errorf("--app %s: nothing was applied: %w", f.pruning.app, notNamed)
	}
	view.PlanView{Palette: view.PaletteFor(f.env, f.env.Stderr), Pruned: out.Pruned}.WriteActions(f.env.Stderr, changes)
	return f.applyPlans(p, changes, out.Pruned)
}

// printer returns a printer of plans in the format of --output.
func (f *planFlags) printer(documents int) *view.Plans {
	v := view.PlanView{
		Palette: view.PaletteFor(f.env, f.env.Stdout), ManagedFields: f.managedFields, Unchanged: f.unchanged,
		Drift: f.drift, Applies: f.apply || f.moves, Suggest: f.suggest(),
	}
	return view.NewPlans(view.Plans{
		PlanView: v, Env: f.env, Format: f.format, Summarize: f.summary, Several: documents > 1,
	})
}

// writePlans writes plans in the format of --output.
func (f *planFlags) writePlans(
	planned []planning.Planned, deleted []planning.Pruned, failed []planning.Document,
) error {
	out := f.printer(len(planned) + len(failed))
	for i := range planned {
		if err := out.Add(&planned[i]); err != nil {
			return err
		}
	}
	for i := range failed {
		if err := out.Fail(&failed[i]); err != nil {
			return err
		}
	}
	out.Pruned = deleted
	return out.Close()
}

// exitStatus returns the exit status for plans with the given worst outcome. others is the number of other changes,
// such as deletions.
func (f *planFlags) exitStatus(worst plans.Outcome, others, failed int) int {
	switch {
	case failed > 0:
		return statusFailed
	case worst == plans.Conflict:
		return statusConflict
	case f.env.IsIncomplete.Load():
		return statusIncomplete
	case worst != plans.Unchanged || others > 0:
		return statusChanges
	}
	return 0
}

// planDocuments plans every document, as eachPlan does. It returns the plans, and the documents that could not be
// planned.
func (f *planFlags) planDocuments(
	p place.Place, docs []document.Document,
) (planned []planning.Planned, failed []planning.Document) {
	f.eachPlan(p, docs, func(one *planning.Document) {
		if one.Err != nil {
			failed = append(failed, *one)
		} else {
			planned = append(planned, one.Planned)
		}
	})
	return planned, failed
}

// eachPlan plans every document, and calls see with each plan or error. It prints errors to stderr, and returns their
// number.
func (f *planFlags) eachPlan(p place.Place, docs []document.Document, see func(*planning.Document)) (failed int) {
	o, env := f.options(), f.env
	f.countSources(docs)
	o.Offline, o.MoveUpdates, o.Policy, o.Drift = f.offline, f.moves, f.rulesFor, f.drift
	if o.Policy == nil {
		o.Policy = func(conflicts.Conflicts) (*policy.Policy, error) { return f.rules, nil }
	}
	unasked := map[planning.Unasked]int{}
	bar := view.NewBar(env, "planning", len(docs))
	untried := planning.Each(env.Context, p, docs, o, func(d *planning.Document) {
		if d.Err == nil && d.Twice != "" && f.apply {
			d.Err = fmt.Errorf("this object is in %s too; expected one document for each object: remove the others",
				d.Twice)
		}
		if d.Err != nil || d.Twice != "" || d.Undecodable != nil || d.Outcome != plans.Unchanged ||
			d.Deletion() != "" || d.Races || f.unchanged || f.drift {
			bar.Hide() // see may print
		}
		f.noteRead(d)
		unasked[d.Unasked]++
		if d.Unasked == planning.HasMoved {
			fmt.Fprintf(env.Stderr, "note: %s: planned without the server: fields that %q updated would first move "+
				"to its Apply entry\n", d.Title(), f.manager)
		}
		if d.Awaits != nil {
			fmt.Fprintf(env.Stderr, "note: %s: planned without the server, which rejects it until %s exists\n", d.Title(),
				d.Awaits.Title())
		}
		for _, drop := range d.Undecodable {
			fmt.Fprintf(env.Stderr, "note: %s: %s\n", d.Title(), printable.Text(f.undecodable(drop)))
		}
		if d.Err != nil {
			failed++
			view.ExplainDesired(env, d.Desired, d.Err)
			for _, way := range d.Ways {
				f.suggest().Write(env.Stderr, way)
			}
		} else {
			for _, err := range d.Uncompared() {
				env.NoteUnread(err)
			}
			if d.Drift != nil && d.Drift.Err != nil {
				env.NoteUnread(fmt.Errorf("%s: the drift is not known: %w", d.Title(), d.Drift.Err))
			}
		}
		see(d)
		bar.Step()
	})
	bar.Done()
	f.noteUnasked(unasked)
	if untried > 0 {
		fmt.Fprintf(env.Stderr, "note: %s not tried with dry runs: %d are tried, %d for each refused apply\n",
			printable.Counted(untried, "way out was", "ways out were"), maxTries, planning.MaxPerRefusal)
	}
	return failed
}

// noteRead prints notes about a document, such as duplicates and warnings.
func (f *planFlags) noteRead(d *planning.Document) {
	if d.Twice != "" && !f.apply {
		fmt.Fprintf(f.env.Stderr, "warning: %s: %s is in %s too: both are planned as applies to the live object\n",
			d.Where, d.Title(), d.Twice)
	}
	if d.Races {
		fmt.Fprintf(f.env.Stderr, "warning: %s is being changed by others: the plan may contain their changes\n",
			d.Title())
	}
	if d.Err == nil {
		if note := view.DeletionNote(&d.Planned); note != "" {
			fmt.Fprintf(f.env.Stderr, "warning: %s %s\n", d.Title(), note)
		}
	}
	if f.live != nil && d.Fields != nil && d.Desired.Object != nil && document.ManagedFields(d.Desired.Object) == nil {
		noteUnmanaged(f.env, d.Target, f.drift)
	}
}

// noteUnasked prints a note for each reason why plans were made without a dry run.
func (f *planFlags) noteUnasked(count map[planning.Unasked]int) {
	if n := count[planning.IsForbidden]; n > 0 {
		f.env.NoteUnread(fmt.Errorf("you lack the permission to apply %s: planned without the server, which may refuse or "+
			"change them",
			printable.Counted(n, "object", "objects")))
	}
	if count[planning.IsOffline] > 0 {
		flag := "--live"
		if f.offline {
			flag = "--offline"
		}
		fmt.Fprintf(f.env.Stderr, "note: %s: the server may refuse or modify the planned applies\n", flag)
	}
	if n := count[planning.IsNew]; n > 0 {
		fmt.Fprintf(f.env.Stderr, "note: planned without the server: %s whose kind or namespace the input creates or "+
			"changes\n", printable.Counted(n, "object", "objects"))
	}
}
