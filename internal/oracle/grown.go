package oracle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Grow adds defaults to keys in the entries of an object, in place: if a list got an additional key field with a
// default, upstream finds an item only by a key with this field (doc/differences.md, 34). schemaAt returns the schema
// of the object at a version. Tests compare Grow, a simple implementation on trees, with Tenure's operation on sets.
func Grow(u *unstructured.Unstructured, schemaAt func(apiVersion string) *spec.Schema) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	items, _ := list.([]any)
	for _, item := range items {
		entry, _ := item.(map[string]any)
		version, _ := entry["apiVersion"].(string)
		if fields, ok := entry["fieldsV1"].(map[string]any); ok {
			entry["fieldsV1"] = grown(fields, schemaAt(version))
		}
	}
}

// GrowSet is [Grow] for one set of fields of a value with a schema.
func GrowSet(set *fieldpath.Set, s *spec.Schema) *fieldpath.Set {
	out, err := fieldpath.FromTree(grown(set.Tree(), s))
	if err != nil {
		panic(err)
	}
	return out
}

func grown(tree map[string]any, s *spec.Schema) map[string]any {
	if s == nil || s.Extensions["x-kubernetes-map-type"] == "atomic" ||
		s.Extensions["x-kubernetes-list-type"] == "atomic" {
		return tree
	}
	keys, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	if s.Items == nil || s.Extensions["x-kubernetes-list-type"] != "map" {
		keys = nil
	}
	out := map[string]any{}
	for name, value := range tree {
		below, _ := value.(map[string]any)
		switch {
		case strings.HasPrefix(name, "f:"):
			below = grown(below, property(s, name[2:]))
		case s.Items != nil:
			below = grown(below, s.Items.Schema)
		}
		if next := grownKey(tree, name, keys, s); next != name {
			name = next
			other, _ := tree[next].(map[string]any)
			below = bothOf(below, grown(other, s.Items.Schema))
		} else if _, ok := out[name]; ok {
			continue // the member exists, and contains what was added to it
		}
		out[name] = below
	}
	return out
}

// grownKey returns the name of a member with the defaults of keys added. If the key of another member has the same
// fields, with the same values, and more fields, grownKey returns the name unchanged.
func grownKey(tree map[string]any, name string, keys []any, s *spec.Schema) string {
	if len(keys) == 0 || !strings.HasPrefix(name, "k:") {
		return name
	}
	fields, grown := keyFields(name), keyFields(name)
	for field := range fields {
		if !slices.Contains(keys, any(field)) {
			return name
		}
	}
	for _, key := range keys {
		if def := s.Items.Schema.Properties[key.(string)].Default; def != nil {
			if _, ok := fields[key.(string)]; !ok {
				grown[key.(string)] = def
			}
		}
	}
	if len(grown) == len(fields) {
		return name
	}
	next := "k:" + JSON(grown)
	for other := range tree {
		if !strings.HasPrefix(other, "k:") || "k:"+JSON(keyFields(other)) == next {
			continue
		}
		has := keyFields(other)
		isAlike := len(has) > len(fields)
		for field, value := range fields {
			isAlike = isAlike && JSON(has[field]) == JSON(value)
		}
		if isAlike {
			return name
		}
	}
	for other := range tree {
		if strings.HasPrefix(other, "k:") && "k:"+JSON(keyFields(other)) == next {
			return other
		}
	}
	return next
}

func keyFields(name string) (fields map[string]any) {
	_ = json.Unmarshal([]byte(name[2:]), &fields)
	return fields
}

func property(s *spec.Schema, name string) *spec.Schema {
	if p, ok := s.Properties[name]; ok {
		return &p
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

// bothOf returns the union of two trees.
func bothOf(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range b {
		if has, ok := out[name].(map[string]any); ok {
			other, _ := value.(map[string]any)
			value = bothOf(has, other)
		}
		out[name] = value
	}
	return out
}
