package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// writeFlags are the flags of apply and replace.
type writeFlags struct {
	inputFlags
	live        string
	manager     string
	force       bool
	dryRun      bool
	subresource string
	namespace   string
	store       string
	schemas     []string
	output      view.Output
}

func (f *writeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.inputFlags.add(cmd, "the objects")
	flags.StringVar(&f.live, "live", "", "write to the object in `FILE`, and the result to stdout, without a store")
	flags.StringVar(&f.manager, "field-manager", storeManager, "`NAME` of the field manager")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be done, and store nothing")
	flags.StringVar(&f.subresource, "subresource", "", "write to the subresource `NAME`: status")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`NAMESPACE` of objects without one (default \"default\")")
	addStoreFlag(cmd, &f.store)
	flags.StringArrayVar(&f.schemas, "schema", nil,
		"`FILE` or folder with OpenAPI v3 documents or CustomResourceDefinitions; may be given several times")
	addOutput(cmd, &f.output, "yaml", "json", "name")
}

// checkFlags checks the flags.
func (f *writeFlags) checkFlags(cmd *cobra.Command) error {
	for _, other := range []string{"store", "dry-run", "namespace"} {
		if f.live != "" && cmd.Flags().Changed(other) {
			return fmt.Errorf("--%s does not go with --live, which writes to no store", other)
		}
	}
	if f.inputs.Empty() {
		return errors.New("no input: expected files with -f")
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
	return f.output.Check()
}

func (f *writeFlags) writeDocuments(env *process.Env, cmd *cobra.Command, apply bool) error {
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	docs, err := f.read(env)
	if err != nil {
		return err
	}
	if f.live != "" {
		return f.writeToLive(env, docs, apply)
	}
	missing := place.CreateStore
	if f.dryRun {
		missing = place.EmptyStore
	}
	p, err := place.OpenStore(env, f.store, f.namespace, missing)
	if err != nil {
		return err
	}
	err = p.AddSchemas(f.schemas)
	if err == nil {
		err = f.writeToStore(cmd.Context(), &place.Writer{Place: p, Apply: apply, Options: cluster.WriteOptions{
			Manager: f.manager, Force: f.force, DryRun: f.dryRun, Subresource: f.subresource,
		}}, docs)
	}
	return errors.Join(err, p.Close())
}

// writeToStore writes the documents one after the other. An error does not stop it.
func (f *writeFlags) writeToStore(ctx context.Context, w *place.Writer, docs []manifest.Document) error {
	failed := false
	var written []map[string]any
	for _, doc := range docs {
		var out place.Outcome
		err := doc.Err
		if err == nil {
			out, err = w.Write(ctx, doc.Tree)
		}
		if err != nil {
			failed = true
			view.Explain(w.Place.Env, err, doc.Where(), out.Reference, f.manager)
			continue
		}
		written = append(written, out.Object)
		switch f.output.Format {
		case "":
			fmt.Fprintf(w.Place.Env.Stdout, "%s %s\n", printable.Text(out.Reference), out.Verb)
		case "name":
			fmt.Fprintln(w.Place.Env.Stdout, printable.Text(out.Reference))
		}
	}
	if f.output.Format == "yaml" || f.output.Format == "json" {
		if err := f.output.Print(w.Place.Env.Stdout, written, len(docs) > 1); err != nil {
			return err
		}
	}
	if failed {
		return errReported
	}
	return nil
}
