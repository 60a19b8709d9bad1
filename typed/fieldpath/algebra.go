package fieldpath

import "maps"

// Most operations of this file walk two sets side by side, in the order of their elements. They share every branch
// that stays the same with their operands. For example, with sets written as paths:
//
//	A                          .a  .b.x  .b.y
//	B                          .b.y  .c
//	A.Union(B)                 .a  .b.x  .b.y  .c     .a is A's node, .c is B's node
//	A.Intersection(B)          .b.y
//	A.Difference(B)            .a  .b.x
//
// Each costs O(nodes of both sets) at most. An intersection or difference with a far larger set costs one search for
// each node of the smaller one. An operand that is empty, or is the other operand, costs nothing.

// seek returns the position, from start on, of the first node that does not sort before e. It searches in steps that
// double, and then by bisection: O(log d) comparisons for a node d positions away.
func seek(nodes []node, start int, e Element) int {
	lo, step := start, 1
	for lo < len(nodes) && nodes[lo].elem().Compare(e) < 0 {
		if lo+step >= len(nodes) || nodes[lo+step].elem().Compare(e) >= 0 {
			// It is within (lo, lo+step].
			lo++
			hi := min(lo+step-1, len(nodes))
			for lo < hi {
				mid := int(uint(lo+hi) >> 1)
				if nodes[mid].elem().Compare(e) < 0 {
					lo = mid + 1
				} else {
					hi = mid
				}
			}
			return lo
		}
		lo += step
		step *= 2
	}
	return lo
}

// setOf returns a set of nodes, or nil for none.
func setOf(nodes []node) *Set {
	if len(nodes) == 0 {
		return nil
	}
	return &Set{nodes: nodes}
}

// Union returns the paths that are in s or in o. It is s or o itself if the other one is empty.
func (s *Set) Union(o *Set) *Set {
	switch {
	case s == o || o.Empty():
		return s
	case s.Empty():
		return o
	}
	out := make([]node, 0, max(len(s.nodes), len(o.nodes)))
	i, j := 0, 0
	for i < len(s.nodes) && j < len(o.nodes) {
		a, b := &s.nodes[i], &o.nodes[j]
		switch c := a.elem().Compare(b.elem()); {
		case c < 0:
			out = append(out, *a)
			i++
		case c > 0:
			out = append(out, *b)
			j++
		default:
			out = append(out, newNode(a.elem(), a.member || b.member, a.sub.Union(b.sub)))
			i++
			j++
		}
	}
	out = append(out, s.nodes[i:]...)
	out = append(out, o.nodes[j:]...)
	return &Set{nodes: out}
}

// UnionOf returns the paths that are in any of the sets. It merges them in pairs, which costs O(n log k) for k sets
// of n nodes; one after the other would cost O(n k).
func UnionOf(sets ...*Set) *Set {
	switch len(sets) {
	case 0:
		return nil
	case 1:
		return sets[0]
	}
	half := len(sets) / 2
	return UnionOf(sets[:half]...).Union(UnionOf(sets[half:]...))
}

// Intersection returns the paths that are both in s and in o.
func (s *Set) Intersection(o *Set) *Set {
	if s == o {
		return s
	}
	if s.Empty() || o.Empty() {
		return nil
	}
	var out []node
	i, j := 0, 0
	for i < len(s.nodes) && j < len(o.nodes) {
		a, b := &s.nodes[i], &o.nodes[j]
		switch c := a.elem().Compare(b.elem()); {
		case c < 0:
			i = seek(s.nodes, i+1, b.elem())
		case c > 0:
			j = seek(o.nodes, j+1, a.elem())
		default:
			if n := (newNode(a.elem(), a.member && b.member, a.sub.Intersection(b.sub))); n.member || n.sub != nil {
				out = append(out, n)
			}
			i++
			j++
		}
	}
	return setOf(out)
}

// Difference returns the paths of s that are not in o, and s itself if that is all of them. A path below a path of o
// stays, unless it is itself in o; see [Set.RecursiveDifference]. Without .b, the set .b .b.x is .b.x.
func (s *Set) Difference(o *Set) *Set { return s.subtract(o, false) }

// RecursiveDifference returns the paths of s that are neither in o nor below a path of o, and s itself if that is all
// of them. Without .b, the set .b .b.x is empty.
func (s *Set) RecursiveDifference(o *Set) *Set { return s.subtract(o, true) }

// AtOrBelow returns the paths of s that are in o or below a path of o.
func (s *Set) AtOrBelow(o *Set) *Set { return s.Difference(s.RecursiveDifference(o)) }

func (s *Set) subtract(o *Set, recursive bool) *Set {
	if s == o {
		return nil
	}
	if s.Empty() || o.Empty() {
		return s
	}
	var out []node // what stays of s.nodes[:i]; set at the first change
	changed := false
	i, j := 0, 0
	for i < len(s.nodes) {
		a := &s.nodes[i]
		j = seek(o.nodes, j, a.elem())
		rest := *a
		if j < len(o.nodes) && o.nodes[j].elem().Equal(a.elem()) {
			b := &o.nodes[j]
			rest.member = a.member && !b.member
			if recursive && b.member {
				rest.sub = nil
			} else {
				rest.sub = a.sub.subtract(b.sub, recursive)
			}
			if !changed && (rest.member != a.member || rest.sub != a.sub) {
				changed = true
				out = append(make([]node, 0, len(s.nodes)), s.nodes[:i]...)
			}
		}
		if changed && (rest.member || rest.sub != nil) {
			out = append(out, rest)
		}
		i++
	}
	if !changed {
		return s
	}
	return setOf(out)
}

// Leaves returns the paths of s that have no longer path of s below them: of .b .b.x, only .b.x.
func (s *Set) Leaves() *Set {
	if s.Empty() {
		return nil
	}
	out := make([]node, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = newNode(n.elem(), n.member && n.sub == nil, n.sub.Leaves())
	}
	return &Set{nodes: out}
}

// Rewrite returns s with f applied to each element of its first level. f returns the new entry of the element; the
// zero [Entry] removes it. Rewrite returns s itself if f changes nothing.
func (s *Set) Rewrite(f func(Element, Entry) Entry) *Set {
	if s == nil {
		return nil
	}
	var out []node // what stays of s.nodes[:i]; set at the first change
	changed := false
	for i := range s.nodes {
		n := &s.nodes[i]
		e := f(n.elem(), Entry{n.member, n.sub})
		if e.Below.Empty() {
			e.Below = nil
		}
		if !changed && (e.Member != n.member || e.Below != n.sub) {
			changed = true
			out = append(make([]node, 0, len(s.nodes)), s.nodes[:i]...)
		}
		if changed && (e.Member || e.Below != nil) {
			out = append(out, newNode(n.elem(), e.Member, e.Below))
		}
	}
	if !changed {
		return s
	}
	return setOf(out)
}

// IntersectTree returns the paths of s that are also in tree, a FieldsV1 of an unstructured object in canonical form
// ([plain.IsMember]). It walks the smaller of the two and looks up its members in the other: a write changes little of
// what an entry owns, and one of many managers owns little of what a write changes.
//
//	s.IntersectTree(tree)  ==  s.Intersection(FromTree(tree))
func (s *Set) IntersectTree(tree map[string]any) *Set {
	if s == nil || len(tree) == 0 {
		return nil
	}
	var b Builder
	both := func(n *node, v any) {
		member, _ := v.(map[string]any)
		_, isMarked := member["."]
		b.Add(n.elem(), n.member && (isMarked || len(member) == 0), n.sub.IntersectTree(member))
	}
	if len(tree) < len(s.nodes) {
		for name, v := range tree {
			if e, err := parseName(name); err == nil && e.kind != 0 {
				if n := s.find(e); n != nil {
					both(n, v)
				}
			}
		}
		return b.Set()
	}
	var space [64]byte
	for i := range s.nodes {
		n := &s.nodes[i]
		name := n.appendName(space[:0])
		if v, ok := tree[string(name)]; ok {
			both(n, v)
		}
	}
	return b.Set()
}

// RemoveFromTree returns tree, a FieldsV1 of an unstructured object in canonical form, without the paths of s. It does not
// change tree, and shares with it the maps that are not on these paths. It costs O(nodes of s), and a copy of the others:
// maps have no order, so nothing is sorted.
//
//	FromTree(s.RemoveFromTree(tree))  ==  FromTree(tree).Difference(s)
func (s *Set) RemoveFromTree(tree map[string]any) map[string]any { return s.removeFrom(tree, false) }

// removeFrom is RemoveFromTree for what is below a path, which is removed as well if isMember is true.
func (s *Set) removeFrom(tree map[string]any, isMember bool) map[string]any {
	if s == nil && !isMember {
		return tree
	}
	out := maps.Clone(tree)
	if isMember {
		delete(out, ".")
	}
	if s == nil {
		return out
	}
	var space [64]byte
	for i := range s.nodes {
		n := &s.nodes[i]
		name := n.appendName(space[:0])
		before, ok := tree[string(name)].(map[string]any)
		if !ok {
			continue
		}
		below := n.sub.removeFrom(before, n.member)
		_, isMarked := below["."]
		switch {
		case len(below) > 1 || len(below) == 1 && !isMarked:
			out[string(name)] = below
		case isMarked || len(before) == 0 && !n.member:
			out[string(name)] = map[string]any{} // is short for a marker alone
		default:
			delete(out, string(name))
		}
	}
	return out
}

// EqualTree reports whether s is the set of tree, a FieldsV1 of an unstructured object in canonical form.
//
//	s.EqualTree(tree)  ==  s.Equal(FromTree(tree))
func (s *Set) EqualTree(tree map[string]any) bool {
	n := len(tree)
	if _, ok := tree["."]; ok {
		n--
	}
	if s == nil || n != len(s.nodes) {
		return s == nil && n == 0
	}
	var space [64]byte
	for i := range n {
		node := &s.nodes[i]
		name := node.appendName(space[:0])
		v, ok := tree[string(name)]
		member, _ := v.(map[string]any)
		_, isMarked := member["."]
		if !ok || node.member != (isMarked || len(member) == 0) || !node.sub.EqualTree(member) {
			return false
		}
	}
	return true
}
