package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func newApply(env *process.Env) *cobra.Command {
	var flags writeFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Apply manifests, each field with its manager",
		Long: `Apply applies every document to the objects of --store or --live, as a server does
for kubectl apply --server-side, and prints both values of a conflict and the ways
out of it. In a cluster, plan --apply does it.

A document is the intent of the manager that --field-manager names: the manager owns
the fields in it. If a field of another manager would change, that is a conflict:
nothing of the document is stored. Fields that the manager applied before and leaves
out now are removed, unless another manager owns them.

Manifests are read as kubectl reads them. A field that the schema does not declare
is an error.

With --policy, the rules of a file decide conflicts, see tenure policy --help.

A store is created if it does not exist. Its server is in this process: it knows the
built-in kinds, and those of CustomResourceDefinitions that are applied to it or
named by --schema. Namespaces do not have to exist. tenure serve --store serves the
file.

With --live, there are no defaults: the document is merged into the object in that
file (an empty one has no object). The result, with its managed fields, is printed,
and can be the next --live.

Exit status: 0 if all documents were applied, 1 if any was not, because of a
conflict or any other error. The other documents are applied all the same.`,
		Example: `  tenure apply -f deployment.yaml --field-manager web --store shop.db

  # take over fields of other managers
  tenure apply -f web.yaml --field-manager me --store shop.db --force-conflicts

  tenure apply --live live.yaml -f deployment.yaml --field-manager web > next.yaml`,
		Args: takesManifests,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := []string{"plan", "--apply"}
			if flags.dryRun {
				args = args[:1]
			}
			if err := flags.place.refuseCluster(cmd, programName(env), args, "output", "show-managed-fields"); err != nil {
				return err
			}
			return flags.writeDocuments(env, cmd, true)
		},
	}
	flags.add(env, cmd)
	flags.addPolicy(cmd)
	cmd.Flags().BoolVar(&flags.force, "force-conflicts", false, "take over the fields in conflict")
	return cmd
}

// decided returns the intent of a document as a policy decides its conflicts, and whether it has to be forced; nil if
// it could not be planned, which was reported. A conflict that is refused is left to the apply.
func (f *writeFlags) decided(
	ctx context.Context, env *process.Env, p place.Place, doc manifest.Document,
) (intent map[string]any, force bool) {
	planned, _ := f.planDocuments(ctx, env, p, []manifest.Document{doc})
	for _, one := range planned {
		for _, d := range one.Decided {
			fmt.Fprintf(env.Stderr, "%s: %s %s of %s, by %s\n",
				one.Title(), d.Decision, d.Path.Short(), d.Owner.Manager, d.Verdict)
		}
		intent, force = one.Manifest(one.Stored().Tree), one.Options.Force
	}
	return intent, force
}
