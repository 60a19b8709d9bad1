package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func newReplace(env *process.Env) *cobra.Command {
	var flags writeFlags
	cmd := &cobra.Command{
		Use:   "replace -f FILE|DIR|-",
		Short: "Replace objects, as an update does",
		Long: `Replace stores every document in place of the object of --store or --live, or
creates it, as an update (HTTP PUT) does. The manager owns what it added or changed;
other managers lose fields that were changed or removed. There are no conflicts. In
a cluster, kubectl replace does it.

The managed fields of a document replace those of the object. Without any, those of
the object are updated by what changed.

Manifests, --store, --schema and --live are as for apply; see tenure apply --help.

Exit status: 0 if all documents were stored, 1 if any was not. The other documents
are stored all the same.`,
		Example: `  # edit an object of a store by hand
  tenure get deploy/nginx -o yaml --store shop.db > nginx.yaml
  tenure replace -f nginx.yaml --field-manager me --store shop.db

  # what a controller does to the status
  tenure replace -f nginx.yaml --field-manager controller --subresource status \
    --store shop.db`,
		Args: takesManifests,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := []string{"replace"}
			if flags.dryRun {
				args = append(args, "--dry-run=server")
			}
			if err := flags.place.refuseCluster(cmd, "kubectl", args, "selector"); err != nil {
				return err
			}
			return flags.writeDocuments(env, cmd, false)
		},
	}
	flags.add(env, cmd)
	return cmd
}
