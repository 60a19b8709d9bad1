package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/folder"
	"github.com/tenure-ssa/tenure/internal/planning/document"
)

// ReadSchemas reads the inputs of --schema: OpenAPI v3 documents, CustomResourceDefinitions, and folders with these.
func ReadSchemas(env *process.Env, names []string) (out []document.Input, err error) {
	for _, name := range names {
		files, err := schemaFiles(env, name)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		input := document.Input{Name: name}
		for _, file := range files {
			docs, err := readSchema(env, file)
			if err != nil {
				return nil, fmt.Errorf("schema: %w", err)
			}
			input.Documents = append(input.Documents, docs...)
		}
		out = append(out, input)
	}
	return out, nil
}

// schemaFiles returns the files of an input, which may be a folder of any depth.
func schemaFiles(env *process.Env, input string) ([]string, error) {
	if info, err := os.Stat(env.Path(input)); err != nil || !info.IsDir() {
		return []string{input}, nil // readSchema reports the error
	}
	return folder.Files([]string{env.Path(input)}, func(name string) bool {
		return slices.Contains(resource.FileExtensions, filepath.Ext(name))
	})
}

// readSchema reads a file with an OpenAPI document or objects.
func readSchema(env *process.Env, name string) (docs []document.Document, err error) {
	if err := env.CheckInside(env.Path(name)); err != nil {
		return nil, err
	}
	// OpenAPI documents have no kind, so ReadFiles can't read them.
	if data, err := os.ReadFile(env.Path(name)); err == nil {
		if err := expansion.Check(data); err != nil {
			return nil, (&document.Document{Source: name}).Wrap(err)
		}
		var tree map[string]any
		if yaml.Unmarshal(data, &tree) == nil && (tree["openapi"] != nil || tree["swagger"] != nil) {
			return []document.Document{{Source: name, Tree: tree}}, nil
		}
	}
	docs, err = ReadFiles(env, name)
	for _, doc := range docs {
		if err == nil {
			err = doc.Err
		}
	}
	return docs, err
}
