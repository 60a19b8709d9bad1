package fieldmanagertest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// The kind of a type that is defined by its properties.
const (
	thingGroup = "example.dev"
	thingKind  = "Thing"
)

// thing returns the definition of a Thing with the given properties.
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
		"metadata":   map[string]any{"name": "things." + thingGroup},
		"spec": map[string]any{
			"group":    thingGroup,
			"names":    map[string]any{"kind": thingKind, "plural": "things"},
			"versions": list,
		},
	}
}

// deduced has the type of values without a schema for every kind.
type deduced struct{}

func (deduced) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

// define makes the object a custom resource.
func (s *server) define(crd map[string]any) error {
	types, err := openapi.CompileCRD(crd)
	if err != nil {
		return err
	}
	spec := crd["spec"].(map[string]any)
	names := spec["names"].(map[string]any)
	kind := schema.GroupKind{Group: spec["group"].(string), Kind: names["kind"].(string)}
	if s.kind.Kind != "" && s.kind != kind {
		return fmt.Errorf("the object is a %s and can't become a %s", s.kind, kind)
	}
	s.kind, s.types, s.crd = kind, types, crd
	s.versions = nil
	for _, v := range spec["versions"].([]any) {
		version := v.(map[string]any)
		name := version["name"].(string)
		s.versions = append(s.versions, name)
	}
	return nil
}

// identify makes the object one of the built-in kind that the first write has.
func (s *server) identify(tree map[string]any) error {
	if s.kind.Kind != "" {
		return nil
	}
	apiVersion, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion == "" || kind == "" {
		return fmt.Errorf("no type: the first object must say its apiVersion and kind, got %q and %q", apiVersion, kind)
	}
	if _, err := s.types.Type(gv.WithKind(kind)); err != nil {
		return fmt.Errorf("no type for %s", gv.WithKind(kind))
	}
	s.kind, s.versions = schema.GroupKind{Group: gv.Group, Kind: kind}, []string{gv.Version}
	return nil
}

// at returns the group version of the object at a version.
func (s *server) at(version string) schema.GroupVersion {
	return schema.GroupVersion{Group: s.kind.Group, Version: version}
}

// subresource returns the definition of a custom resource's subresource.
func (s *server) subresource(version, name string) (map[string]any, bool) {
	spec, _ := s.crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		tree, _ := v.(map[string]any)
		if tree["name"] == version {
			subresources, _ := tree["subresources"].(map[string]any)
			found, ok := subresources[name].(map[string]any)
			return found, ok
		}
	}
	return nil, false
}

// typeAt returns the type of the object at a version; nil if there is none.
func (s *server) typeAt(version string) *typed.Type {
	t, err := s.types.Type(s.at(version).WithKind(s.kind.Kind))
	if err != nil {
		return nil
	}
	return t
}

// hasStatus reports whether the object has a status subresource at a version. A built-in type has one if it has a
// status field.
func (s *server) hasStatus(version string) bool {
	if s.crd != nil {
		_, ok := s.subresource(version, "status")
		return ok
	}
	t := s.typeAt(version)
	return t != nil && t.Map != nil && t.Map.Field("status").Type != nil
}

// serves reports whether the object has a subresource at a version.
func (s *server) serves(subresource, version string) bool {
	switch subresource {
	case "":
		return true
	case "status":
		return s.hasStatus(version)
	case "scale":
		return s.scalePath(version) != nil
	}
	return false
}

// scalePath returns the path of the object's replicas at a version, nil if it has no scale subresource. A built-in
// type has one if it has spec.replicas.
func (s *server) scalePath(version string) fieldpath.Path {
	if s.crd == nil {
		t := s.typeAt(version)
		if t == nil || t.Map == nil {
			return nil
		}
		spec := t.Map.Field("spec").Type
		if spec == nil || spec.Map == nil || spec.Map.Field("replicas").Type == nil {
			return nil
		}
		return fieldpath.Fields("spec", "replicas")
	}
	scale, ok := s.subresource(version, "scale")
	if !ok {
		return nil
	}
	path, _ := scale["specReplicasPath"].(string)
	return fieldpath.Fields(strings.Split(strings.TrimPrefix(path, "."), ".")...)
}

// resetFields returns the reset fields of a subresource by version.
func (s *server) resetFields(subresource string) map[string]fieldpath.Filter {
	out := map[string]fieldpath.Filter{}
	for _, version := range s.versions {
		switch {
		case subresource == "status":
			out[s.at(version).String()] = fieldpath.Excluding{Set: fieldpath.NewSet(
				fieldpath.Fields("spec"), fieldpath.Fields("metadata"))}
		case s.hasStatus(version):
			out[s.at(version).String()] = fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.Fields("status"))}
		}
	}
	return out
}
