package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// FieldSet returns the paths that an intent with value v owns (spec rules 4.1, 4.2 and 4.3): every scalar, null, atomic
// list or map and empty map, every item of a set or keyed list, every entry of a map that is not a declared field,
// and what is owned below them. It holds neither a declared field that is a granular container with content, nor an
// empty granular list.
//
// For example, with ports keyed by port and labels a map with free keys:
//
//	v     labels: {app: x}  ports: [{port: 80}]  args: []  hints: {}
//	set   .labels.app  .ports[port=80]  .ports[port=80].port  .hints
//
// A duplicated item is owned without its content. An item that has no key is left out; [Type.Validate] reports it. A
// call costs O(n log n) for n map entries and items, as sets are sorted.
func (t *Type) FieldSet(v any) *fieldpath.Set {
	_, below := t.fieldSet(v, 0)
	return below
}

// fieldSet reports whether v, at a depth, is a leaf, and returns the paths below it.
func (t *Type) fieldSet(v any, depth int) (leaf bool, below *fieldpath.Set) {
	if depth > MaxDepth {
		return true, nil
	}
	switch t.shapeOf(v).first() {
	case scalarShape:
		return true, nil
	case mapShape:
		if t.Map.Atomic {
			return true, nil
		}
		return false, t.Map.fieldSet(asMap(v), depth+1)
	case listShape:
		if t.List.Kind == AtomicList {
			return true, nil
		}
		return false, t.List.fieldSet(asList(v), depth+1)
	}
	return false, nil
}

func (m *Map) fieldSet(entries map[string]any, depth int) *fieldpath.Set {
	b := fieldpath.NewBuilder(len(entries))
	for name, v := range entries {
		t, declared := m.field(name)
		if t == nil {
			t = deducedType
		}
		leaf, below := t.fieldSet(v, depth)
		b.Add(fieldpath.Field(name), leaf || !declared || isEmptyValue(v), below)
	}
	return b.Set()
}

// isEmptyValue reports whether v is null or an empty map, which is owned itself because nothing below it can be.
func isEmptyValue(v any) bool {
	if m, ok := v.(map[string]any); ok {
		return len(m) == 0
	}
	return v == nil || isEmptyContainer(v)
}

func (l *List) fieldSet(list []any, depth int) *fieldpath.Set {
	x := l.indexOf(list)
	b := fieldpath.NewBuilder(len(list))
	for i, e := range x.elems {
		if x.times(e) > 1 {
			b.Add(e, true, nil)
			continue
		}
		_, below := l.Elem.fieldSet(list[x.at[i]], depth)
		b.Add(e, true, below)
	}
	return b.Set()
}
