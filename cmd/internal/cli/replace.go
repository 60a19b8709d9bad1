package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func newReplace(env *process.Env) *cobra.Command {
	var flags writeFlags
	cmd := &cobra.Command{
		Use:   "replace -f FILE|DIR|-",
		Short: "Put objects in the place of those in the store, as an update does",
		Long: `Replace stores every document in the place of the object in the store, or creates
it: what an update (HTTP PUT) does. The manager comes to own what it added or
changed; others lose what was changed or removed, and there are no conflicts.

A document that has managed fields says whose fields they are from then on; one
without them leaves them to follow from the change.

FILE, the kinds that are known, what is filled in and --live are as for apply; see
tenure apply --help.

Exit status: 0 when all was stored, 1 when any document was not. The other
documents are stored all the same.`,
		Example: `  # edit an object by hand
  tenure get deploy nginx -o yaml > nginx.yaml
  tenure replace -f nginx.yaml --field-manager me

  # what a controller does to the status
  tenure replace -f nginx.yaml --field-manager controller --subresource status`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(env, cmd, false) },
	}
	flags.add(cmd)
	return cmd
}
