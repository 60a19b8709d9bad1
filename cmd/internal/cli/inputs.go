package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// inputFlags are the flags for documents, as kubectl has them.
type inputFlags struct {
	inputs manifest.Inputs
}

func (f *inputFlags) add(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.inputs.Filenames, "filename", "f", nil,
		"`FILE`, folder, pattern or URL with "+what+", or - for stdin; may be given several times")
	flags.StringVarP(&f.inputs.Kustomize, "kustomize", "k", "", "`DIR` with a kustomization, which is built")
	flags.BoolVarP(&f.inputs.Recursive, "recursive", "R", false, "read the folders in folders too")
}

// read reads the documents, at least one.
func (f *inputFlags) read(env *process.Env) ([]manifest.Document, error) {
	docs, err := f.inputs.Read(env)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, errors.New("-f: no objects found")
	}
	return docs, nil
}
