package typed

import "github.com/tenure-ssa/tenure/internal/limits"

// dropUnknown implements values.DropUnknown.
func (t *Type) dropUnknown(v, live any) any {
	d := dropper{left: limits.MaxValues}
	return d.value(t, v, live, 0)
}

type dropper struct {
	finder finder // finds live's items
	left   int    // values that may still be visited
}

// value returns a value at the given depth without undeclared fields.
func (d *dropper) value(t *Type, v, live any, depth int) any {
	if d.left--; d.left < 0 || depth > limits.MaxDepth {
		return v
	}
	if t.isLeafShape(t.shapeOf(v).first()) {
		if equal(v, live, 0, &d.left) {
			return v
		}
		live = nil // an atomic value is one leaf
	}
	switch x := v.(type) {
	case map[string]any:
		if t.Map != nil {
			return d.entries(t.Map, x, asMap(live), depth)
		}
	case []any:
		if t.List != nil {
			return withItems(x, func(_ int, item any) any {
				e, _ := t.List.element(item) // an item that can't be selected has no live item
				return d.value(t.List.elem, item, d.finder.child(t, live, e), depth+1)
			})
		}
	}
	return v
}

func (d *dropper) entries(m *Map, entries, live map[string]any, depth int) map[string]any {
	out := entries
	for name, v := range entries {
		kept := missing
		if t, _ := m.Child(name); t != nil {
			kept = d.value(t, v, live[name], depth+1)
		}
		if !same(kept, v) {
			out = withEntry(out, entries, name, kept)
		}
	}
	return out
}
