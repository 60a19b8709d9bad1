package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

const (
	crdAPIVersion = "apiextensions.k8s.io/v1"
	crdKind       = "CustomResourceDefinition"
)

// definition is the part of a CustomResourceDefinition that determines types.
type definition struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
		Versions              []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
			Subresources struct {
				Status map[string]any `json:"status"`
			} `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

// CompileCRD compiles a CustomResourceDefinition of apiextensions.k8s.io/v1, in JSON or YAML. The result has the kind
// at each version in spec.versions, including versions that are not served, and keeps no references to the document.
//
// CompileCRD completes the schema of a version as a server does. In the object and in every embedded resource,
// apiVersion and kind become strings, and metadata gets the type of metadata in built-in kinds, whatever the schema
// says. Keywords that a server drops, such as x-kubernetes-patch-strategy, have no effect. Without a schema, a version
// is free-form, including its metadata.
//
// The error is the decoder's error, or joins a [SchemaError] for each fault.
func CompileCRD(document []byte) (*Registry, error) {
	data, err := asJSON(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crdKind, err)
	}
	var d definition
	err = utiljson.Unmarshal(data, &d)
	d.Metadata.Name = cmp.Or(d.Metadata.Name, crdKind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Metadata.Name, inWords(err))
	}
	return d.compile()
}

func (d *definition) compile() (*Registry, error) {
	var errs []error
	fail := func(path, format string, args ...any) {
		errs = append(errs, &SchemaError{Model: d.Metadata.Name, Path: path, Detail: fmt.Sprintf(format, args...)})
	}
	// Objects that a program builds often have no apiVersion and kind.
	if d.APIVersion != "" && d.APIVersion != crdAPIVersion {
		fail("apiVersion", "got %q, want %q", d.APIVersion, crdAPIVersion)
	}
	if d.Kind != "" && d.Kind != crdKind {
		fail("kind", "got %q, want %q", d.Kind, crdKind)
	}
	required := func(path, name string) {
		if name == "" {
			fail(path, "missing, want a name")
		}
	}
	required("spec.group", d.Spec.Group)
	required("spec.names.kind", d.Spec.Names.Kind)
	if len(d.Spec.Versions) == 0 {
		fail("spec.versions", "missing, want at least one version")
	}
	types := Union()
	for i, version := range d.Spec.Versions {
		path := fmt.Sprintf("spec.versions[%d]", i)
		required(path+".name", version.Name)
		gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind}
		if types.kinds[gvk].load != nil {
			fail(path+".name", "version %q is listed twice", version.Name)
		}
		path += ".schema.openAPIV3Schema"
		// A model that has only type: object is free-form.
		model := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
		if tree := version.Schema.OpenAPIV3Schema; tree != nil {
			tree = bare(tree, path, fail)
			data, err := json.Marshal(tree)
			if err == nil {
				model = new(spec.Schema)
				err = model.UnmarshalJSON(data)
			}
			if err != nil {
				fail(path, "cannot decode: %v", err)
				continue
			}
			complete(model, tree)
			completeObject(model)
		}
		preserve := d.Spec.PreserveUnknownFields
		c := compileModels(map[string]*spec.Schema{version.Name: model},
			map[string]*typed.Type{objectMetaModel: objectMeta(preserve)}, compiler{preserve: preserve})
		for _, err := range c.errs {
			e := err.(*SchemaError)
			fail(path+"."+e.Path, "%s", e.Detail)
		}
		types.add(gvk, c.refer(version.Name))
		types.setStatus(gvk, version.Subresources.Status != nil)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return types, nil
}

// The keywords that determine topology.
const (
	preserveKeyword = "x-kubernetes-preserve-unknown-fields"
	embeddedKeyword = "x-kubernetes-embedded-resource"
	listMapKeys     = "x-kubernetes-list-map-keys"
	kindKeyword     = "x-kubernetes-group-version-kind"
)

var topologyKeywords = []string{
	"type", "format", "pattern", "nullable", "default", "properties", "items", "additionalProperties", preserveKeyword,
	embeddedKeyword, listMapKeys, "x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-map-type",
}

// bare returns a schema with only the keywords for topology. All other keywords are for validation, or are dropped by
// servers, such as x-kubernetes-patch-strategy. bare also reports faults that servers reject but that the decoder of
// schemas accepts.
func bare(tree map[string]any, path string, fail func(path, format string, args ...any)) map[string]any {
	if _, ok := tree["$ref"]; ok {
		fail(path+".$ref", "not allowed in a CustomResourceDefinition, want the schema itself")
	}
	out := map[string]any{}
	for _, name := range topologyKeywords {
		v := tree[name]
		if v == nil {
			continue
		}
		out[name] = v
		_, isBool := v.(bool)
		list, isList := v.([]any)
		isText := func(v any) bool { _, ok := v.(string); return ok }
		switch {
		case (name == preserveKeyword || name == embeddedKeyword) && !isBool:
			fail(path+"."+name, "got %#v, want true or false", v)
		case name == listMapKeys && slices.ContainsFunc(list, func(v any) bool { return !isText(v) }):
			fail(path+"."+name, "got %v, want the names of fields", v)
		case name == "type" && isList:
			fail(path+"."+name, "got a list, want one type")
		}
	}
	inside := func(parent map[string]any, name, step string) {
		if schema, ok := parent[name].(map[string]any); ok {
			parent[name] = bare(schema, path+"."+step, fail)
		}
	}
	inside(out, "items", "items")
	inside(out, "additionalProperties", "additionalProperties")
	if properties, ok := out["properties"].(map[string]any); ok {
		properties = maps.Clone(properties)
		out["properties"] = properties
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			inside(properties, name, propertyStep(name))
		}
	}
	return out
}

// complete completes a schema, decoded from tree, as a server does: embedded resources get the fields that all objects
// have. It takes defaults from tree, because the decoder rounds integers.
func complete(m *spec.Schema, tree map[string]any) {
	m.Default = tree["default"]
	properties, _ := tree["properties"].(map[string]any)
	for name, property := range m.Properties {
		inside, _ := properties[name].(map[string]any)
		complete(&property, inside)
		m.Properties[name] = property
	}
	if m.Items != nil && m.Items.Schema != nil {
		items, _ := tree["items"].(map[string]any)
		complete(m.Items.Schema, items)
	}
	if a := m.AdditionalProperties; a != nil && a.Schema != nil {
		entries, _ := tree["additionalProperties"].(map[string]any)
		complete(a.Schema, entries)
	}
	if m.Extensions[embeddedKeyword] == true {
		completeObject(m)
	}
}

// completeObject adds the fields that all objects have to the schema of an object or embedded resource.
func completeObject(m *spec.Schema) {
	m.SetProperty("apiVersion", *spec.StringProperty())
	m.SetProperty("kind", *spec.StringProperty())
	m.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMetaModel))
}
