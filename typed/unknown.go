package typed

import (
	"github.com/tenure-ssa/tenure/internal/limits"
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
		kept := missing
		if t, _ := m.Child(name); t == nil {
			d.add("field not declared in schema")
		} else {
			kept = d.value(t, v, live[name])
		}
		d.pop()
		if !same(kept, v) {
			out = withEntry(out, entries, name, kept)
		}
	}
	return out
}

func (d *dropper) items(t *Type, list []any, live any) []any {
	return withItems(list, func(i int, v any) any {
		e := fieldpath.Index(i)
		if !t.List.IsAtomic() {
			if named, err := t.List.element(v); err == nil {
				e = named
			}
		}
		d.push(e)
		defer d.pop()
		return d.value(t.List.elem, v, d.finder.child(t, live, e))
	})
}
