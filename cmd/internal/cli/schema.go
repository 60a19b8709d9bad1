package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// addSchemas adds what --schema names to the catalog: OpenAPI v3 documents,
// CustomResourceDefinitions, and folders of them. Other objects in a folder are
// passed over, so that a folder of manifests will do.
func (c *catalog) addSchemas(env *Env, inputs []string) error {
	for _, input := range inputs {
		docs, err := env.readDocuments([]string{input})
		if err != nil {
			return fmt.Errorf("schema: %w", err)
		}
		found := false
		for _, doc := range docs {
			if doc.err != nil {
				return fmt.Errorf("schema: %s: %w", doc.where(), doc.err)
			}
			ok, err := c.addSchema(doc.tree)
			if err != nil {
				return fmt.Errorf("schema: %s: %w", doc.where(), err)
			}
			found = found || ok
		}
		if !found {
			return fmt.Errorf("schema: %s: no OpenAPI v3 document and no CustomResourceDefinition in it", input)
		}
	}
	return nil
}

// addSchema adds a document, and reports whether it is one that has a schema.
func (c *catalog) addSchema(tree map[string]any) (bool, error) {
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
	if gvk, err := gvkOf(tree); err != nil || gvk.GroupKind() != definitionKind {
		return false, nil
	}
	d, err := define(tree)
	if err != nil {
		return false, err
	}
	c.define(d)
	return true, nil
}

// gvkOf returns the kind that an object says it is of; the error names the field
// that is wrong.
func gvkOf(tree map[string]any) (schema.GroupVersionKind, error) {
	apiVersion, err := text(tree, "", "apiVersion")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kind, err := text(tree, "", "kind")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, fmt.Errorf(".apiVersion: expected GROUP/VERSION or VERSION, got %q", apiVersion)
	}
	return gv.WithKind(kind), nil
}

// text returns a string that must be there.
func text(tree map[string]any, parent, name string) (string, error) {
	s, err := optionalText(tree, parent, name)
	if err == nil && s == "" {
		err = fmt.Errorf("%s.%s: missing", parent, name)
	}
	return s, err
}

// optionalText returns a string, or "" when it is not there.
func optionalText(tree map[string]any, parent, name string) (string, error) {
	v := tree[name]
	s, ok := v.(string)
	if v != nil && !ok {
		return "", fmt.Errorf("%s.%s: expected a string, got %s", parent, name, describe(v))
	}
	return s, nil
}

func nameOf(tree map[string]any) string {
	metadata, _ := tree["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}
