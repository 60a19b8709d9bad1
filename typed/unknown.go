package typed

import (
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/fieldpath"
)

// DropUnknown returns v without the fields that structs of its type do not
// declare, at any depth, and an error of reason [UnknownField] for each of them,
// sorted by path. The result shares memory with v, and is v itself when there
// are none. v must have been validated with [Rules] that let unknown fields pass.
func (t *Type) DropUnknown(v any) (any, Errors) {
	var d dropper
	out := d.value(t, v)
	err, _ := d.err().(Errors)
	return out, err
}

type dropper struct{ faults }

func (d *dropper) value(t *Type, v any) any {
	if len(d.path) > MaxDepth {
		return v
	}
	switch x := v.(type) {
	case map[string]any:
		if t.Map != nil {
			return d.entries(t.Map, x)
		}
	case []any:
		if t.List != nil {
			return d.items(t.List, x)
		}
	}
	return v
}

func (d *dropper) entries(m *Map, entries map[string]any) map[string]any {
	out := entries
	for name, v := range entries {
		d.push(fieldpath.Field(name))
		t, _ := m.field(name)
		var kept any
		if t == nil {
			d.add(UnknownField, "field not declared in schema")
		} else {
			kept = d.value(t, v)
		}
		d.pop()
		if t != nil && same(kept, v) {
			continue
		}
		if sameMap(out, entries) {
			out = maps.Clone(entries)
		}
		if t == nil {
			delete(out, name)
		} else {
			out[name] = kept
		}
	}
	return out
}

func (d *dropper) items(l *List, list []any) []any {
	out := list
	for i, v := range list {
		e := fieldpath.Index(i)
		if l.Kind != AtomicList {
			if named, err := l.element(v); err == nil {
				e = named
			}
		}
		d.push(e)
		kept := d.value(l.Elem, v)
		d.pop()
		if same(kept, v) {
			continue
		}
		if sameList(out, list) {
			out = slices.Clone(list)
		}
		out[i] = kept
	}
	return out
}
