package oracle

import (
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema makes the schema of a value, with at most depth levels.
func (g *Gen) Schema(depth int) spec.Schema {
	n := 10
	if depth <= 0 {
		n = 4
	}
	switch g.Intn(n) {
	case 0:
		return schemaOf("string")
	case 1:
		return schemaOf("integer")
	case 2:
		return schemaOf("boolean")
	case 3:
		return extended(spec.Schema{}, "x-kubernetes-int-or-string", true)
	case 4:
		s := schemaOf("object")
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: new(g.Schema(depth - 1))}
		return g.mapType(s)
	case 5:
		return g.mapType(g.Struct(depth))
	case 6:
		return listOf(g.Schema(depth-1), "atomic")
	case 7:
		if g.odd && g.Chance(3) {
			return listOf(extended(spec.Schema{}, "x-kubernetes-int-or-string", true), "set")
		}
		return listOf(g.scalar(), "set")
	case 8:
		return g.keyedList(depth)
	default:
		return extended(schemaOf("object"), "x-kubernetes-preserve-unknown-fields", true)
	}
}

// Struct makes the schema of a struct.
func (g *Gen) Struct(depth int) spec.Schema {
	s := schemaOf("object")
	s.Properties = map[string]spec.Schema{}
	for range 1 + g.Intn(4) {
		s.Properties[g.name()] = g.Schema(depth - 1)
	}
	if g.Chance(8) {
		s = extended(s, "x-kubernetes-preserve-unknown-fields", true)
	}
	return s
}

func (g *Gen) scalar() spec.Schema {
	return []spec.Schema{schemaOf("string"), schemaOf("integer"), schemaOf("boolean"), schemaOf("number")}[g.Intn(4)]
}

func (g *Gen) mapType(s spec.Schema) spec.Schema {
	switch g.Intn(4) {
	case 1:
		return extended(s, "x-kubernetes-map-type", "atomic")
	case 2:
		return extended(s, "x-kubernetes-map-type", "granular")
	}
	return s
}

func (g *Gen) keyedList(depth int) spec.Schema {
	item := g.Struct(depth - 1)
	if g.odd && g.Chance(4) {
		item = g.mapType(item)
	}
	var keys []any
	for i := range 1 + g.Intn(3) {
		key := g.scalar()
		if g.odd && g.Chance(4) {
			key = extended(spec.Schema{}, "x-kubernetes-int-or-string", true)
		}
		if (i > 0 || g.odd) && g.Chance(2) {
			key.Default = g.value(&key, 0)
		}
		item.Properties[keyNames[i]] = key
		keys = append(keys, keyNames[i])
	}
	list := listOf(item, "map")
	return extended(list, "x-kubernetes-list-map-keys", keys)
}

func schemaOf(t string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{t}}}
}

func listOf(item spec.Schema, listType string) spec.Schema {
	s := schemaOf("array")
	s.Items = &spec.SchemaOrArray{Schema: &item}
	return extended(s, "x-kubernetes-list-type", listType)
}

func extended(s spec.Schema, name string, v any) spec.Schema {
	extensions := spec.Extensions{name: v}
	for k, old := range s.Extensions {
		if k != name {
			extensions[k] = old
		}
	}
	s.Extensions = extensions
	return s
}

// withAnotherKey returns the schema of a keyed list with one more key field, which has a default. Other lists stay as
// they are.
func (g *Gen) withAnotherKey(s spec.Schema) spec.Schema {
	keys, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	if len(keys) == 0 || len(keys) == len(keyNames) || s.Items.Schema.Properties == nil {
		return s
	}
	item, name := *s.Items.Schema, keyNames[len(keys)]
	key := g.scalar()
	key.Default = g.value(&key, 0)
	item.Properties = maps.Clone(item.Properties)
	item.Properties[name] = key
	s.Items = &spec.SchemaOrArray{Schema: &item}
	return extended(s, "x-kubernetes-list-map-keys", append(slices.Clone(keys), name))
}

// Retype returns s with the topology of some parts changed, as in a new version of a type: atomic lists and maps become
// granular, granular lists and maps become atomic, and keyed lists get one more key field.
func (g *Gen) Retype(s spec.Schema) spec.Schema {
	if s.Properties != nil {
		properties := map[string]spec.Schema{}
		for _, name := range sortedKeys(s.Properties) {
			properties[name] = g.Retype(s.Properties[name])
		}
		s.Properties = properties
	}
	switch {
	case len(s.Type) == 0:
	case s.Type[0] == "object" && g.Chance(3):
		s = extended(s, "x-kubernetes-map-type", []any{"atomic", "granular"}[g.Intn(2)])
	case s.Type[0] == "array" && g.Chance(3):
		item := s.Items.Schema
		switch g.Intn(3) {
		case 2:
			s = g.withAnotherKey(s)
		case 0:
			s = extended(s, "x-kubernetes-list-type", "atomic")
		case 1:
			if _, hasKeys := s.Extensions["x-kubernetes-list-map-keys"]; hasKeys {
				s = extended(s, "x-kubernetes-list-type", "map")
			} else if len(item.Type) > 0 && item.Type[0] != "object" && item.Type[0] != "array" {
				s = extended(s, "x-kubernetes-list-type", "set")
			}
		}
	}
	return s
}
