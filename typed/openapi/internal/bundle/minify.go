package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// minify returns an OpenAPI v3 document without paths and descriptions, which are most of it, and the kinds that its
// models describe. All else stays, even what topology does not need: defaults, formats, enums, extensions.
func minify(document []byte) ([]byte, []schema.GroupVersionKind, error) {
	var parsed struct {
		OpenAPI    string          `json:"openapi"`
		Info       json.RawMessage `json:"info,omitempty"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // numbers stay as they were written
	if err := decoder.Decode(&parsed); err != nil {
		return nil, nil, fmt.Errorf("not an OpenAPI v3 document: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, model := range parsed.Components.Schemas {
		dropDescriptions(model)
		m, _ := model.(map[string]any)
		kinds = append(kinds, Kinds(m)...)
	}
	// Maps are written sorted by key.
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(parsed); err != nil {
		return nil, nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), kinds, nil
}

// Kinds returns the kinds that a model with these extensions describes, without malformed ones. YAML decoders return
// maps with keys of any type.
func Kinds(extensions map[string]any) []schema.GroupVersionKind {
	list, _ := extensions["x-kubernetes-group-version-kind"].([]any)
	var out []schema.GroupVersionKind
	for _, item := range list {
		var group, version, kind any
		switch fields := item.(type) {
		case map[string]any:
			group, version, kind = fields["group"], fields["version"], fields["kind"]
		case map[any]any:
			group, version, kind = fields["group"], fields["version"], fields["kind"]
		}
		g, okGroup := group.(string)
		v, okVersion := version.(string)
		k, okKind := kind.(string)
		if okGroup && okVersion && okKind && k != "" {
			out = append(out, schema.GroupVersionKind{Group: g, Version: v, Kind: k})
		}
	}
	return out
}

// dropDescriptions removes the descriptions of a schema and of all schemas in it. It visits only schemas, because a
// property or a field of a default may have the name description.
func dropDescriptions(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	delete(m, "description")
	for _, keyword := range []string{"additionalProperties", "items", "not"} {
		dropDescriptions(m[keyword])
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[keyword].([]any)
		for _, item := range list {
			dropDescriptions(item)
		}
	}
	properties, _ := m["properties"].(map[string]any)
	for _, property := range properties {
		dropDescriptions(property)
	}
}
