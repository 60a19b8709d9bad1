package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/internal/trees"
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
				OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// CompileCRD compiles a CustomResourceDefinition of apiextensions.k8s.io/v1, given as a plain JSON tree: its kind at
// each version of spec.versions, served or not. It does not change crd and keeps nothing of it.
//
// It completes the schema of a version as a server does: apiVersion and kind are strings, and metadata has the type
// of built-in kinds, in the object and in every embedded resource, whatever the schema says. Keywords that a server
// drops, such as x-kubernetes-patch-strategy, have no effect. A version without a schema is free-form, metadata
// included.
//
// An error is that of the JSON decoder, or joins a [SchemaError] for each fault.
func CompileCRD(crd map[string]any) (*Registry, error) {
	if !trees.IsWithin(crd, maxNesting) {
		return nil, fmt.Errorf("%s: nested too deep, want at most %d levels", crdKind, maxNesting)
	}
	data, err := json.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crdKind, err)
	}
	var d definition
	err = utiljson.Unmarshal(data, &d)
	d.Metadata.Name = cmp.Or(d.Metadata.Name, crdKind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Metadata.Name, err)
	}
	return d.compile()
}

func (d *definition) compile() (*Registry, error) {
	var errs []*SchemaError
	fail := func(path, format string, args ...any) {
		errs = append(errs, &SchemaError{Model: d.Metadata.Name, Path: path, Reason: fmt.Sprintf(format, args...)})
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
	types := map[schema.GroupVersionKind]*typed.Type{}
	for i, version := range d.Spec.Versions {
		path := fmt.Sprintf("spec.versions[%d]", i)
		required(path+".name", version.Name)
		gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind}
		if _, ok := types[gvk]; ok {
			fail(path+".name", "version %q is listed twice", version.Name)
		}
		path += ".schema.openAPIV3Schema"
		// A model that is only an object is free-form.
		model := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
		if raw := version.Schema.OpenAPIV3Schema; raw != nil && string(raw) != "null" {
			model = new(spec.Schema)
			if err := model.UnmarshalJSON(raw); err != nil {
				fail(path, "cannot decode: %v", err)
			}
			complete(model, path, fail)
			completeObject(model)
		}
		c := newCompiler(map[string]*spec.Schema{version.Name: model},
			map[string]*typed.Type{objectMetaModel: objectMeta(d.Spec.PreserveUnknownFields)})
		c.run(d.Spec.PreserveUnknownFields)
		for _, e := range c.errs {
			fail(path+"."+e.Path, "%s", e.Reason)
		}
		types[gvk] = c.refer(version.Name)
	}
	if len(errs) > 0 {
		return nil, joined(errs)
	}
	return compiled(types), nil
}

// complete makes a schema what a server makes of it: without the keywords that it drops, and embedded resources with
// the fields of all objects. A reference is a fault.
func complete(m *spec.Schema, path string, fail func(path, format string, args ...any)) {
	if m.Ref.String() != "" {
		fail(path+".$ref", "not allowed in a CustomResourceDefinition, want the schema itself")
	}
	maps.DeleteFunc(m.Extensions, func(name string, v any) bool {
		return v == nil || name == "x-kubernetes-patch-strategy" || name == "x-kubernetes-patch-merge-key"
	})
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		property := m.Properties[name]
		complete(&property, path+"."+propertyStep(name), fail)
		m.Properties[name] = property
	}
	if m.Items != nil && m.Items.Schema != nil {
		complete(m.Items.Schema, path+".items", fail)
	}
	if a := m.AdditionalProperties; a != nil && a.Schema != nil {
		complete(a.Schema, path+".additionalProperties", fail)
	}
	if m.Extensions["x-kubernetes-embedded-resource"] == true {
		completeObject(m)
	}
}

// completeObject adds the fields of all objects to the schema of an object or embedded resource.
func completeObject(m *spec.Schema) {
	m.SetProperty("apiVersion", *spec.StringProperty())
	m.SetProperty("kind", *spec.StringProperty())
	m.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMetaModel))
}
