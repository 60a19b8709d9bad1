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

A document is the intent of the manager that --field-manager names: the manager owns
the fields in it. If a field of another manager would change, that is a conflict:
nothing of the document is stored, and the conflicts are printed with the ways out
of them. Fields that the manager applied before and leaves out now are removed,
unless another manager owns them.

FILE holds YAML documents, JSON, or lists of objects. In a folder, every .yaml, .yml
and .json file is read, at any depth, in the order of their names. A
CustomResourceDefinition defines its kind for the documents behind it, and, once it
is in the store, for every later command. Schemas of --schema take precedence over
those of the store.

The object is stored as a server stores it: validated, with defaults, uid and so on.
tenure serve serves the file. Namespaces do not have to exist. A field that the
schema does not declare is an error. For kinds with a status, apply does not change
status; with --subresource status, it changes nothing else.

With --live, there is no store, and there are no defaults: the document is merged
into the object in that file (an empty file is no object). The result, with its
managed fields, is written to stdout, and can be the next --live.

Exit status: 0 if all documents were applied, 1 if any was not, because of a
conflict or any other error. The other documents are applied all the same.`,
		Example: `  # apply a folder, as the manager web
  tenure apply -f manifests/ --field-manager web

  # take over fields of other managers
  tenure apply -f deployment.yaml --field-manager web --force-conflicts

  # what would the result be?
  cat deployment.yaml | tenure apply -f - --dry-run -o yaml --show-managed-fields

  # without a store
  tenure apply --live live.yaml -f deployment.yaml --field-manager web > next.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.writeDocuments(env, cmd, true) },
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&flags.force, "force-conflicts", false, "take over the fields in conflict")
	return cmd
}
