package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

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

// read reads the documents with some labels, at least one.
func (f *inputFlags) read(env *process.Env, selector string) ([]manifest.Document, error) {
	of, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("-l: %w", err)
	}
	docs, err := f.inputs.Read(env)
	if err != nil {
		return nil, err
	}
	docs = slices.DeleteFunc(docs, func(doc manifest.Document) bool {
		object := unstructured.Unstructured{Object: doc.Tree}
		return doc.Err == nil && !of.Matches(labels.Set(object.GetLabels()))
	})
	if len(docs) == 0 {
		return nil, errors.New("-f: no objects found")
	}
	return docs, nil
}
