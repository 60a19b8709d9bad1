package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
)

type planFlags struct {
	intentFlags
	diff          bool
	managedFields bool
	format        string
}

func newPlan(env *process.Env) *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR|-",
		Short: "Say what an apply would do, and whether it would do anything",
		Long: `Plan says for every document what would come of applying it: nothing, a change of
ownership, a change of the object, or a conflict. It shows the fields that would
change, and which manager gains, shares, loses or removes which fields. Nothing is
sent that could change anything.

The live objects are those of the cluster, of the store that --store names, or of
the file that --live names.

The whole input counts as applied: objects may be of a kind, or in a namespace, that
another document defines or creates, with --store one before them. In a cluster, an
object whose namespace is not there is an error, as its apply would fail. (kubectl
apply takes objects of a new kind in a second run only.)

It is assumed that the server fills the defaults of the schema in and, for built-in
kinds, takes 1000m for 1 and empty lists for none; --plain assumes neither.
"unchanged" then means that the server would write nothing. What webhooks do is not
known.

Values of Secrets are not shown.

Exit status: 0 when nothing would change, 1 when an object or the ownership of a
field would, 2 on a conflict, 3 on any error. Of several documents, the highest.`,
		Example: `  # what would change in the cluster?
  tenure plan -f deployment.yaml --field-manager web --diff

  # in a pipeline: apply only when there is something to do
  tenure plan -f manifests/ --field-manager web || kubectl apply --server-side …

  # without a cluster
  kubectl get -f manifests/ -o yaml --show-managed-fields > live.yaml
  tenure plan -f manifests/ --live live.yaml --field-manager web -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(env, cmd) },
	}
	flags.add(cmd)
	flags.addSubresource(cmd)
	flags.addPlain(cmd)
	cmd.Flags().BoolVar(&flags.force, "force-conflicts", false, "plan to take over the fields that are in conflict")
	cmd.Flags().BoolVar(&flags.diff, "diff", false, "show the difference of the objects, as diff -u does")
	cmd.Flags().BoolVar(&flags.managedFields, "show-managed-fields", false,
		"show metadata.managedFields in the difference too")
	addFormat(cmd, &flags.format, "json")
	return failsWith(statusFailed, cmd)
}

func (f *planFlags) run(env *process.Env, cmd *cobra.Command) error {
	if err := checkFormat(f.format, "json"); err != nil {
		return err
	}
	p, docs, err := f.open(env, cmd, true)
	if err != nil {
		return err
	}
	plans, failed := f.plan(cmd.Context(), env, p, docs)
	if err := p.Close(); err != nil {
		return err
	}
	shown := view.PlanView{Palette: view.PaletteFor(env, env.Stdout), Diff: f.diff, ManagedFields: f.managedFields}
	if f.format == "json" {
		err = shown.Json(env.Stdout, plans)
	} else {
		err = shown.Text(env.Stdout, plans, failed)
	}
	if err != nil {
		return err
	}
	status := 0
	for _, planned := range plans {
		status = max(status, statusOf(planned.Outcome))
	}
	switch {
	case failed > 0:
		return &statusError{status: statusFailed}
	case status > 0:
		return &statusError{status: status}
	}
	return nil
}

// plan plans every document. Of those that it fails for it tells on stderr, and
// returns how many they are.
func (f *planFlags) plan(
	ctx context.Context, env *process.Env, p place.Place, docs []manifest.Document,
) (plans []view.Planned, failed int) {
	step, done := view.Progress(env, "planning", len(docs))
	var errs []func()
	for _, doc := range docs {
		w, err := f.desired(ctx, env, p, doc)
		if err == nil {
			one := view.Planned{Desired: w, Options: w.PlanOptions(f.plain)}
			one.Options.Force = f.force
			if one.Plan, err = w.Fields.Plan(place.Wrap(w.Object), place.Wrap(w.Tree), w.Manager, one.Options); err == nil {
				plans = append(plans, one)
			}
		}
		if err != nil {
			failed++
			errs = append(errs, func() { view.ExplainDesired(env, w, err) })
		}
		step()
	}
	done()
	for _, tell := range errs {
		tell()
	}
	return plans, failed
}
