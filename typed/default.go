package typed

import (
	"github.com/tenure-ssa/tenure/internal/limits"
)

// Default returns v as a server that knows only the schema stores it (spec rule 13.2): a missing declared field gets
// its default, and a null field that is not nullable is removed. Default also visits atomic lists and maps, and the
// defaults themselves. It does not set defaults that only the code of a server knows, such as the replicas of a
// Deployment.
//
// v must be valid. The result shares memory with v and with the schema. If nothing changes, the result is v itself.
func (t *Type) Default(v any) any {
	left := limits.MaxValues
	return t.setDefaults(v, 0, &left)
}

// setDefaults is Default for a value at the given depth. left is the number of defaults that may still be set. The
// limits on depth and left end the recursion if defaults contain each other.
func (t *Type) setDefaults(v any, depth int, left *int) any {
	if depth > limits.MaxDepth {
		return v
	}
	switch x := v.(type) {
	case map[string]any:
		if t.Map != nil {
			return t.Map.setDefaults(x, depth, left)
		}
	case []any:
		if t.List != nil {
			return withItems(x, func(_ int, item any) any { return t.List.elem.setDefaults(item, depth+1, left) })
		}
	}
	return v
}

func (m *Map) setDefaults(entries map[string]any, depth int, left *int) map[string]any {
	out := entries
	for name, field := range m.fields {
		v, exists := entries[name]
		if field.Default != nil && (!exists || v == nil && !field.Nullable) {
			if *left--; *left < 0 {
				break
			}
			out = withEntry(out, entries, name, m.typeOf(name).setDefaults(field.Default, depth+1, left))
		} else if exists && v == nil && !field.Nullable {
			out = withEntry(out, entries, name, missing)
		}
	}
	for name, v := range entries {
		if t, _ := m.Child(name); t != nil && v != nil {
			if filled := t.setDefaults(v, depth+1, left); !same(v, filled) {
				out = withEntry(out, entries, name, filled)
			}
		}
	}
	return out
}
