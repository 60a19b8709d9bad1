package place

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/folder"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// AddSchemas adds the inputs of --schema to the catalog: OpenAPI v3 documents, CustomResourceDefinitions,
// and folders of them. It ignores other objects, so that an input can be a folder of manifests.
func (c *Catalog) AddSchemas(env *process.Env, inputs []string) error {
	for _, input := range inputs {
		names, err := schemaFiles(env, input)
		if err != nil {
			return fmt.Errorf("schema: %w", err)
		}
		found := false
		for _, name := range names {
			ok, err := c.addSchemaFile(env, name)
			if err != nil {
				return fmt.Errorf("schema: %w", err)
			}
			found = found || ok
		}
		if !found {
			return fmt.Errorf("schema: %s: no OpenAPI v3 document and no CustomResourceDefinition found", input)
		}
	}
	return nil
}

// schemaFiles returns the files of an input, at any depth.
func schemaFiles(env *process.Env, input string) ([]string, error) {
	if info, err := os.Stat(env.Path(input)); err != nil || !info.IsDir() {
		return []string{input}, nil // its reader reports the error
	}
	return folder.AllFiles([]string{env.Path(input)}, func(name string) bool {
		return slices.Contains(resource.FileExtensions, filepath.Ext(name))
	})
}

// addSchemaFile adds the OpenAPI document or the definitions in a file, and reports whether it has any.
func (c *Catalog) addSchemaFile(env *process.Env, name string) (found bool, err error) {
	// OpenAPI documents have no kind, so that they are not read as objects are.
	if data, err := os.ReadFile(env.Path(name)); err == nil {
		var tree map[string]any
		if yaml.Unmarshal(data, &tree) == nil && (tree["openapi"] != nil || tree["swagger"] != nil) {
			found, err = c.addSchema(tree)
			return found, (&manifest.Document{Source: name}).Wrap(err)
		}
	}
	docs, err := manifest.ReadFiles(env, name)
	if err != nil {
		return false, err
	}
	for _, doc := range docs {
		if doc.Err != nil {
			return false, doc.Err
		}
		ok, err := c.addSchema(doc.Tree)
		if err != nil {
			return false, doc.Wrap(err)
		}
		found = found || ok
	}
	return found, nil
}

// addSchema adds a document, and reports whether it has a schema.
func (c *Catalog) addSchema(tree map[string]any) (bool, error) {
	if version, ok := tree["openapi"].(string); ok {
		if !strings.HasPrefix(version, "3.") {
			return false, fmt.Errorf(".openapi: expected version 3, got %q", version)
		}
		data, err := json.Marshal(tree)
		if err != nil {
			return false, err
		}
		types, err := openapi.CompileV3(data)
		if err != nil {
			return false, err
		}
		c.addTypes(types)
		return true, nil
	}
	if _, ok := tree["swagger"]; ok {
		return false, fmt.Errorf(".swagger: this is OpenAPI v2, expected v3")
	}
	if gvk, err := manifest.GVKOf(tree); err != nil || gvk.GroupKind() != DefinitionKind {
		return false, nil
	}
	d, err := Define(tree)
	if err != nil {
		return false, err
	}
	c.Define(d)
	return true, nil
}
