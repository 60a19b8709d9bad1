package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// writeFlags are the flags of apply and replace.
type writeFlags struct {
	planFlags
	dryRun bool
	output view.Output
}

func (f *writeFlags) add(env *process.Env, cmd *cobra.Command) {
	f.intentFlags.add(env, cmd)
	f.addSubresource(cmd)
	addDryRun(cmd, &f.dryRun, false, "print what would be done, and store nothing")
	addOutput(cmd, &f.output, "yaml", "json", "name")
}

// writeDocuments writes the documents one after the other. An error does not stop it.
func (f *writeFlags) writeDocuments(env *process.Env, cmd *cobra.Command, isApply bool) (err error) {
	if err := f.output.Check(); err != nil {
		return err
	}
	f.rules, err = f.readPolicy(env)
	if err == nil && isApply && f.policy != "" && f.subresource == place.Scale {
		err = errors.New("--policy does not go with --subresource scale")
	}
	if err != nil {
		return err
	}
	missing := process.CreateStore
	if f.dryRun {
		missing = process.EmptyStore
	}
	p, docs, err := f.open(env, cmd, missing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if f.place.live != nil {
		// The result is the next live object, which needs its managed fields.
		f.output.ManagedFields = true
		if f.output.Format == "" {
			f.output.Format = "yaml"
		}
	}
	w := &place.Writer{Env: env, Place: p, Apply: isApply, Options: cluster.WriteOptions{
		Manager: f.manager, Force: f.force, DryRun: f.dryRun, Subresource: f.subresource,
	}}
	failed := false
	var written []map[string]any
	for _, doc := range docs {
		var out place.Outcome
		err, intent := doc.Err, doc.Tree
		if err == nil && isApply && f.rules != nil && f.subresource != place.Scale {
			var force bool
			if intent, force = f.decided(cmd.Context(), env, p, doc); intent == nil {
				failed = true
				continue
			}
			w.Options.Force = f.force || force
		}
		if err == nil {
			out, err = w.Write(cmd.Context(), intent)
		}
		if err != nil {
			failed = true
			view.Explain(env, err, doc.Source, out.Reference, f.manager)
			continue
		}
		written = append(written, out.Object)
		switch f.output.Format {
		case "":
			fmt.Fprintf(env.Stdout, "%s %s\n", printable.Text(out.Reference), out.Verb)
		case "name":
			fmt.Fprintln(env.Stdout, printable.Text(out.Reference))
		}
	}
	if f.output.Format == "yaml" || f.output.Format == "json" {
		if len(written) > 0 || f.place.live == nil {
			err = f.output.Print(env.Stdout, written, len(docs) > 1)
		}
	}
	if failed {
		err = errors.Join(err, errReported)
	}
	return err
}
