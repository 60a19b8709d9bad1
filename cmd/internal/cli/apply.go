package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func newApply(env *process.Env) *cobra.Command {
	var flags writeFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Merge objects into the store, each field with its manager",
		Long: `Apply merges every document into the object in the store, or creates it.

What a document says is the intent of the manager that --field-manager names: the
manager owns the fields in it. A field that others own and that would change is a
conflict: nothing of that document is stored, and the conflicts are shown with
the ways out of them. What the manager applied before and leaves out now is
removed, unless somebody else owns it.

FILE holds YAML documents, JSON, or lists of objects; of a folder every .yaml,
.yml and .json file is read, at any depth, in the order of their names. A
CustomResourceDefinition is known to the documents behind it, and, once it is in
the store, to every later command; what --schema names goes before the store.

The object is stored as a server would have stored it, with defaults, uid and the
like, once its schema and rules are met; tenure serve serves the file. Namespaces
need not be there. A field that the schema does not know is an error. Of a kind
with a status, status is left as it is; with --subresource status, everything else.

With --live, there is no store, and there are no defaults: the document is merged
into the object in that file (an empty file is no object), and the result with its
managed fields is written to stdout, to be the next --live.

Exit status: 0 when all was applied, 1 when any document was not, for a conflict
or any other reason. The other documents are applied all the same.`,
		Example: `  # apply a folder, as the manager web
  tenure apply -f manifests/ --field-manager web

  # take over what others own
  tenure apply -f deployment.yaml --field-manager web --force-conflicts

  # what would become of it?
  cat deployment.yaml | tenure apply -f - --dry-run -o yaml --show-managed-fields

  # without a store
  tenure apply --live live.yaml -f deployment.yaml --field-manager web > next.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(env, cmd, true) },
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&flags.force, "force-conflicts", false, "take over the fields that are in conflict")
	return cmd
}
