package typed

import (
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// dropUnknown is values.DropUnknown.
func (t *Type) dropUnknown(v, live any) (any, Errors) {
	d := dropper{left: limits.MaxValues}
	out := d.value(t, v, live)
	err, _ := d.err().(Errors)
	return out, err
}

type dropper struct {
	faults
	finder finder // of live's items
	left   int    // values that may still be visited
}

func (d *dropper) value(t *Type, v, live any) any {
	if d.left--; d.left < 0 || len(d.path) > limits.MaxDepth {
		return v
	}
	if t.isLeafShape(t.shapeOf(v).first()) {
		if equal(v, live, 0, &d.left) {
			return v
		}
		live = nil // an atomic value is one value
	}
	switch x := v.(type) {
	case map[string]any:
		if t.Map != nil {
			return d.entries(t.Map, x, asMap(live))
		}
	case []any:
		if t.List != nil {
			return d.items(t, x, live)
		}
	}
	return v
}

func (d *dropper) entries(m *Map, entries, live map[string]any) map[string]any {
	out := entries
	for name, v := range entries {
		d.push(fieldpath.Field(name))
		t, _ := m.Child(name)
		var kept any
		if t == nil {
			d.add("field not declared in schema")
		} else {
			kept = d.value(t, v, live[name])
		}
		d.pop()
		if t != nil && same(kept, v) {
			continue
		}
		if trees.SameMap(out, entries) {
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

func (d *dropper) items(t *Type, list []any, live any) []any {
	l, out := t.List, list
	for i, v := range list {
		e := fieldpath.Index(i)
		if !l.IsAtomic() {
			if named, err := l.element(v); err == nil {
				e = named
			}
		}
		d.push(e)
		var there any
		if live != nil {
			there = d.finder.child(t, live, e)
		}
		kept := d.value(l.elem, v, there)
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
