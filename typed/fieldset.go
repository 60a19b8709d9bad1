package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// FieldSet returns the paths that an intent of value v owns (spec rules 4.1 to 4.3):
// every scalar, null, atomic list or map and empty map, every item of a set or
// keyed list, every entry of a map that is not a declared field, and what is
// owned below them. A declared field that is a granular container with
// something in it is not owned itself, nor is a granular list that is empty.
//
// Items that stand twice are owned as items only. Items that nothing can select
// are left out; [Type.Validate] finds them. The set is built anew, in
// O(n log n) of the size of v for the sorting of map entries.
func (t *Type) FieldSet(v any) *fieldpath.Set {
	_, below := t.fieldSet(v, 0)
	return below
}

// fieldSet returns whether v, at a depth, is a leaf, and the paths below it.
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

// isEmptyValue reports whether v is a null or an empty map: nothing below it
// can be owned, so it is owned itself.
func isEmptyValue(v any) bool {
	if v == nil {
		return true
	}
	return isLiveMap(v) && isEmptyMap(v)
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
