package manifest

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// Inputs are where documents come from, as kubectl has them.
type Inputs struct {
	// Files are files, folders, URLs, and - for standard input.
	Files []string
	// Flat leaves out the folders in folders.
	Flat bool
	// Kustomize is a folder with a kustomization; empty for none.
	Kustomize string
}

// Empty reports whether there are no inputs.
func (in *Inputs) Empty() bool { return len(in.Files) == 0 && in.Kustomize == "" }

// Read reads all documents. The error says that an input can't be read; what is wrong with a document is in
// its Err.
func (in *Inputs) Read(env *process.Env) ([]Document, error) {
	out, err := readDocuments(env, in.Files, in.Flat, decode)
	if err != nil || in.Kustomize == "" {
		return out, err
	}
	built, err := buildKustomization(env.Path(in.Kustomize))
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: %w", in.Kustomize, err)
	}
	return append(out, Split("kustomization "+in.Kustomize, built)...), nil
}

// buildKustomization builds a kustomization as kubectl does.
func buildKustomization(folder string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return built.AsYaml()
}
