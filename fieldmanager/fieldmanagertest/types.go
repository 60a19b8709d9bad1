package fieldmanagertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/resetfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// thing returns the CustomResourceDefinition of Thing in the group example.dev with the given properties.
func thing(properties map[string]any, versions []string) map[string]any {
	if len(versions) == 0 {
		versions = []string{"v1"}
	}
	var list []any
	for _, name := range versions {
		version := map[string]any{
			"name": name,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": properties,
			}},
		}
		if _, ok := properties["status"]; ok {
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
		list = append(list, version)
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "things.example.dev"},
		"spec": map[string]any{
			"group":    "example.dev",
			"names":    map[string]any{"kind": "Thing", "plural": "things"},
			"versions": list,
		},
	}
}

// deduced returns, for every kind, the type of values without a schema.
type deduced struct{}

func (deduced) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

// define makes the object a custom resource.
func (s *server) define(crd map[string]any) error {
	data, err := json.Marshal(crd)
	if err != nil {
		return err
	}
	types, err := openapi.CompileCRD(data)
	if err != nil {
		return err
	}
	kind := types.Kinds()[0].GroupKind()
	if s.kind.Kind != "" && s.kind != kind {
		return fmt.Errorf("the object is a %s and can't become a %s", s.kind, kind)
	}
	s.kind, s.types, s.crd = kind, types, crd
	s.versions, s.replicas = nil, map[string][]string{}
	for _, v := range crd["spec"].(map[string]any)["versions"].([]any) {
		version := v.(map[string]any)
		name := version["name"].(string)
		s.versions = append(s.versions, name)
		if path, ok, _ := unstructured.NestedString(version, "subresources", "scale", "specReplicasPath"); ok {
			s.replicas[name] = strings.Split(strings.TrimPrefix(path, "."), ".")
		}
	}
	return nil
}

// serves reports whether the object has a subresource at a version.
func (s *server) serves(subresource, version string) bool {
	return subresource == "" || subresource == "status" && s.HasStatus(s.kind.WithVersion(version)) ||
		subresource == "scale" && s.replicas[version] != nil
}

// identify sets the kind of the object to the kind of tree, unless the object already has a kind.
func (s *server) identify(tree map[string]any) error {
	if s.kind.Kind != "" {
		return nil
	}
	u := unstructured.Unstructured{Object: tree}
	gvk := u.GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" {
		return fmt.Errorf("no type: the first object must say its apiVersion and kind, got %q and %q",
			u.GetAPIVersion(), u.GetKind())
	}
	t, err := s.types.Type(gvk)
	if err != nil {
		return fmt.Errorf("no type for %s", gvk)
	}
	s.kind, s.versions = gvk.GroupKind(), []string{gvk.Version}
	// A built-in type with spec.replicas has the scale subresource.
	if fieldOf(fieldOf(t, "spec"), "replicas") != nil {
		s.replicas = map[string][]string{gvk.Version: {"spec", "replicas"}}
	}
	return nil
}

// fieldOf returns the type of a declared field; nil if there is none.
func fieldOf(t *typed.Type, name string) *typed.Type {
	if t == nil || t.Map == nil {
		return nil
	}
	return t.Map.Field(name).Type
}

// at returns the group version for a version of the object.
func (s *server) at(version string) schema.GroupVersion {
	return schema.GroupVersion{Group: s.kind.Group, Version: version}
}

// resets describes the fields that a write through a subresource resets, at a version.
func (s *server) resets(subresource, version string) resetfields.Write {
	return resetfields.Write{
		Kind: s.kind.WithVersion(version), Subresource: subresource, IsBuiltin: s.crd == nil, Types: s,
	}
}

// Versions implements [resetfields.Types].
func (s *server) Versions(schema.GroupKind) []string { return s.versions }

// HasStatus implements [resetfields.Types].
func (s *server) HasStatus(kind schema.GroupVersionKind) bool {
	types, _ := s.types.(*openapi.Registry) // nil for an object without a schema
	return types.HasStatus(kind)
}
