package fieldsets

import (
	"maps"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// IntersectTree returns the paths of s that are also in tree. The argument tree is FieldsV1 in canonical form
// ([plain.IsMember]), as unstructured objects have it. IntersectTree walks the smaller of s and tree, and looks up the
// members in the larger one, because the sizes often differ: a write usually changes few of an entry's fields, and if
// there are many managers, an entry has few of the fields that a write changes.
//
//	IntersectTree(s, tree)  ==  s.Intersection(FromTree(tree))
func IntersectTree(s *fieldpath.Set, tree map[string]any) *fieldpath.Set {
	if s.IsEmpty() || len(tree) == 0 {
		return nil
	}
	var b Builder
	both := func(e fieldpath.Element, isMember bool, below *fieldpath.Set, v any) {
		member, _ := v.(map[string]any)
		_, isMarked := member["."]
		b.Add(e, isMember && (isMarked || len(member) == 0), IntersectTree(below, member))
	}
	size := 0 // of the level; counting stops when it exceeds the size of tree
	for range s.Level() {
		if size++; size > len(tree) {
			break
		}
	}
	if size > len(tree) {
		for name, v := range tree {
			if e, err := fieldpath.ParseElement(name); err == nil {
				isMember, below := s.At(e)
				both(e, isMember, below, v)
			}
		}
		return b.Set()
	}
	var space [64]byte
	for e, entry := range s.Level() {
		if v, ok := tree[string(e.AppendName(space[:0]))]; ok {
			both(e, entry.Member, entry.Below, v)
		}
	}
	return b.Set()
}

// RemoveFromTree returns tree without the paths of s. The argument tree is FieldsV1 as for [IntersectTree];
// RemoveFromTree does not change it. The result shares the maps that are not on these paths. RemoveFromTree costs
// O(nodes of s), plus a shallow copy of the maps on the paths. It sorts nothing, because maps have no order.
//
//	FromTree(RemoveFromTree(s, tree))  ==  FromTree(tree).Difference(s)
func RemoveFromTree(s *fieldpath.Set, tree map[string]any) map[string]any {
	return removeFrom(s, tree, false)
}

// removeFrom is RemoveFromTree for the content below a path. If isMember is true, the path itself is removed, too.
func removeFrom(s *fieldpath.Set, tree map[string]any, isMember bool) map[string]any {
	if s.IsEmpty() && !isMember {
		return tree
	}
	out := maps.Clone(tree)
	if isMember {
		delete(out, ".")
	}
	var space [64]byte
	for e, entry := range s.Level() {
		name := e.AppendName(space[:0])
		before, ok := tree[string(name)].(map[string]any)
		if !ok {
			continue
		}
		below := removeFrom(entry.Below, before, entry.Member)
		_, isMarked := below["."]
		switch {
		case len(below) > 1 || len(below) == 1 && !isMarked:
			out[string(name)] = below
		case isMarked || len(before) == 0 && !entry.Member:
			out[string(name)] = map[string]any{} // {} is short for the marker alone
		default:
			delete(out, string(name))
		}
	}
	return out
}

// EqualTree reports whether s is the set of tree, which is FieldsV1 as for [IntersectTree].
//
//	EqualTree(s, tree)  ==  s.Equal(FromTree(tree))
func EqualTree(s *fieldpath.Set, tree map[string]any) bool {
	n := len(tree)
	if _, ok := tree["."]; ok {
		n--
	}
	var space [64]byte
	for e, entry := range s.Level() {
		v, ok := tree[string(e.AppendName(space[:0]))]
		member, _ := v.(map[string]any)
		_, isMarked := member["."]
		if !ok || entry.Member != (isMarked || len(member) == 0) || !EqualTree(entry.Below, member) {
			return false
		}
		n--
	}
	return n == 0
}
