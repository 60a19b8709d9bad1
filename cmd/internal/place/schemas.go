package place

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// AddSchemas adds the inputs of --schema to the catalog: OpenAPI v3 documents, CustomResourceDefinitions,
// and folders of them. It ignores other objects, so that an input can be a folder of manifests.
func (c *Catalog) AddSchemas(env *process.Env, inputs []string) error {
	for _, input := range inputs {
		docs, err := manifest.ReadDocuments(env, []string{input})
		if err != nil {
			return fmt.Errorf("schema: %w", err)
		}
		found := false
		for _, doc := range docs {
			if doc.Err != nil {
				return fmt.Errorf("schema: %s: %w", doc.Where(), doc.Err)
			}
			ok, err := c.addSchema(doc.Tree)
			if err != nil {
				return fmt.Errorf("schema: %s: %w", doc.Where(), err)
			}
			found = found || ok
		}
		if !found {
			return fmt.Errorf("schema: %s: no OpenAPI v3 document and no CustomResourceDefinition found", input)
		}
	}
	return nil
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
