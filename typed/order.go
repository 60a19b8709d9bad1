package typed

import (
	"slices"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Equal reports whether two values of type t are equal in the semantics of s. In nil semantics, values are equal if
// they are the same JSON. Unlike a [Comparison], Equal distinguishes lists whose items are in a different order.
func (s *Semantics) Equal(t *Type, a, b any) bool {
	if s == nil {
		return Equal(a, b)
	}
	return same(a, b) || s.sameMeaning(t, a, b, 0)
}

// Reordered returns the paths of the sets and keyed lists whose common items are in a different order in old and
// updated. A [Comparison] does not find lists that differ only in their order. Both values must be valid. For example,
// for the keyed lists ports: [{port: 80}, {port: 90}] and ports: [{port: 90}, {port: 80}], it returns .ports. It costs
// O(size) of both values.
func (t *Type) Reordered(old, updated any) *fieldpath.Set {
	return t.reordered(old, updated, 0).Below
}

func (t *Type) reordered(old, updated any, depth int) (out fieldpath.Entry) {
	if depth > limits.MaxDepth || same(old, updated) {
		return out
	}
	switch shapes := t.shapeOf(updated); {
	case shapes != t.shapeOf(old):
	case shapes.first() == mapShape && !t.Map.isAtomic:
		out.Below = t.Map.reordered(asMap(old), asMap(updated), depth+1)
	case shapes.first() == listShape && !t.List.IsAtomic():
		out = t.List.reordered(asList(old), asList(updated), depth+1)
	}
	return out
}

func (m *Map) reordered(old, updated map[string]any, depth int) *fieldpath.Set {
	var below fieldsets.Builder
	for name, l := range old {
		d := m.typeOf(name).reordered(l, updated[name], depth)
		below.Add(fieldpath.FieldElement(name), d.Member, d.Below)
	}
	return below.Set()
}

func (l *List) reordered(old, updated []any, depth int) (out fieldpath.Entry) {
	before, after := l.indexOf(old), l.indexOf(updated)
	// An item with a different number of duplicates differs anyway; here, only its first position is used.
	shared := func(x *index) []fieldpath.Element {
		elems := make([]fieldpath.Element, 0, len(x.elems))
		for i, e := range x.elems {
			n, m := before.times(e), after.times(e)
			if n > 0 && m > 0 && (n == m || x.isFirst(i)) {
				elems = append(elems, e)
			}
		}
		return elems
	}
	elems := shared(&before)
	out.Member = !slices.Equal(elems, shared(&after))
	var below fieldsets.Builder
	for _, e := range elems {
		d := l.elem.reordered(before.only(e), after.only(e), depth) // nothing for duplicates, which are missing here
		below.Add(e, d.Member, d.Below)
	}
	out.Below = below.Set()
	return out
}
