package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// writeFlags are the flags of apply and replace.
type writeFlags struct {
	files       []string
	live        string
	manager     string
	force       bool
	dryRun      bool
	subresource string
	namespace   string
	store       string
	schemas     []string
	output      output
}

func newApply(env *Env) *cobra.Command {
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

func newReplace(env *Env) *cobra.Command {
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

func (f *writeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "`FILE`, folder, or - for stdin; may be given several times")
	flags.StringVar(&f.live, "live", "", "write to the object in `FILE`, and the result to stdout, without a store")
	flags.StringVar(&f.manager, "field-manager", storeManager, "`NAME` of who manages what is written")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and store nothing")
	flags.StringVar(&f.subresource, "subresource", "", "write to the subresource `NAME`: status")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`NAMESPACE` of objects that name none (default \"default\")")
	addStoreFlag(cmd, &f.store)
	flags.StringArrayVar(&f.schemas, "schema", nil, "`FILE` or folder with OpenAPI v3 documents or CustomResourceDefinitions; may be given several times")
	f.output.add(cmd, "yaml", "json", "name")
}

func addStoreFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "store", "tenure.db", "`FILE` with the objects")
}

// check finds faults of the flags.
func (f *writeFlags) check(cmd *cobra.Command) error {
	for _, other := range []string{"store", "dry-run", "namespace"} {
		if f.live != "" && cmd.Flags().Changed(other) {
			return fmt.Errorf("--%s means nothing with --live, which writes to no store", other)
		}
	}
	if len(f.files) == 0 {
		return errors.New("nothing to read: name files with -f")
	}
	if f.manager == "" {
		return errors.New("--field-manager: the name is empty")
	}
	if err := managedfields.ValidateManager(f.manager); err != nil {
		return fmt.Errorf("--field-manager: %w", err)
	}
	if f.subresource != "" && f.subresource != "status" {
		return fmt.Errorf("--subresource: expected status, got %q", f.subresource)
	}
	return f.output.check()
}

func (f *writeFlags) run(env *Env, cmd *cobra.Command, apply bool) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	docs, err := env.readDocuments(f.files)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return errors.New("no objects in what -f names")
	}
	if f.live != "" {
		return f.runLive(env, docs, apply)
	}
	missing := createStore
	if f.dryRun {
		missing = emptyStore
	}
	p, err := openStore(env, f.store, f.namespace, missing)
	if err != nil {
		return err
	}
	err = p.addSchemas(f.schemas)
	if err == nil {
		err = f.runStore(cmd.Context(), &writer{place: p, apply: apply, options: cluster.WriteOptions{
			Manager: f.manager, Force: f.force, DryRun: f.dryRun, Subresource: f.subresource,
		}}, docs)
	}
	return errors.Join(err, p.close())
}

// runStore writes the documents one after the other, whatever becomes of each.
func (f *writeFlags) runStore(ctx context.Context, w *writer, docs []document) error {
	failed := false
	var written []map[string]any
	for _, doc := range docs {
		var out outcome
		err := doc.err
		if err == nil {
			out, err = w.write(ctx, doc.tree)
		}
		if err != nil {
			failed = true
			w.place.env.explain(err, doc.where(), out.reference, f.manager)
			continue
		}
		written = append(written, out.object)
		switch f.output.format {
		case "":
			fmt.Fprintf(w.place.env.Stdout, "%s %s\n", printable.Text(out.reference), out.verb)
		case "name":
			fmt.Fprintln(w.place.env.Stdout, printable.Text(out.reference))
		}
	}
	if f.output.format == "yaml" || f.output.format == "json" {
		if err := f.output.print(w.place.env.Stdout, written, len(docs) > 1); err != nil {
			return err
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// explain writes to stderr why a document was not written. where is its place,
// reference the object if that is known.
func (e *Env) explain(err error, where, reference, manager string) {
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		if err := conflicting.Render(e.Stderr, reference, manager); err != nil {
			e.report(err)
		}
		return
	}
	if reference != "" {
		where += ": " + printable.Text(reference)
	}
	var fault *fieldmanager.ObjectError
	if errors.As(err, &fault) && fault.Role == fieldmanager.AppliedObject {
		// The document is what was applied, and is named already.
		err = fault.Err
	}
	e.report(fmt.Errorf("%s: %w", where, err))
}
