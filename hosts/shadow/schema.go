package shadow

import (
	"github.com/tenure-ssa/tenure/typed"
)

// maxSchemaDepth bounds the schema of a type that holds itself; below, anything goes.
const maxSchemaDepth = 40

// schemaOf returns the schema of an object of a type, as a CustomResourceDefinition has it.
func schemaOf(t *typed.Type) map[string]any {
	root := schemaAt(t, 0)
	if root["type"] != "object" {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	if properties, ok := root["properties"].(map[string]any); ok {
		// What every object has is not part of a definition.
		for _, name := range []string{"apiVersion", "kind"} {
			properties[name] = map[string]any{"type": "string"}
		}
		properties["metadata"] = map[string]any{"type": "object"}
	}
	return root
}

func schemaAt(t *typed.Type, depth int) map[string]any {
	anything := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	if t == nil || depth > maxSchemaDepth {
		return anything
	}
	switch {
	case t.Map != nil && t.List == nil && t.Scalar == 0:
		return mapSchema(t.Map, depth)
	case t.List != nil && t.Map == nil && t.Scalar == 0:
		return listSchema(t.List, depth)
	case t.Map != nil || t.List != nil:
		return anything
	}
	switch t.Scalar {
	case typed.String:
		return map[string]any{"type": "string"}
	case typed.Boolean:
		return map[string]any{"type": "boolean"}
	case typed.Numeric:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"x-kubernetes-int-or-string": true}
}

func mapSchema(m *typed.Map, depth int) map[string]any {
	out := map[string]any{"type": "object"}
	if m.IsAtomic() {
		out["x-kubernetes-map-type"] = "atomic"
	}
	properties := map[string]any{}
	for name, field := range m.Fields() {
		property := schemaAt(field.Type, depth+1)
		if field.Default != nil {
			property["default"] = field.Default
		}
		properties[name] = property
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	switch {
	case m.IsUntyped():
		out["x-kubernetes-preserve-unknown-fields"] = true
	case m.Elem() != nil && len(properties) == 0:
		out["additionalProperties"] = schemaAt(m.Elem(), depth+1)
	case m.Elem() != nil:
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return out
}

func listSchema(l *typed.List, depth int) map[string]any {
	out := map[string]any{"type": "array", "items": schemaAt(l.Elem(), depth+1)}
	switch {
	case l.IsAtomic():
		out["x-kubernetes-list-type"] = "atomic"
	case l.IsSet():
		out["x-kubernetes-list-type"] = "set"
	default:
		var list []any
		for key := range l.Keys() {
			list = append(list, key)
		}
		out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", list
	}
	return out
}
