package fieldpath

import "sort"

// Most operations in this file walk two sets side by side, in the order of their elements. The result shares each
// unchanged branch with the operands. For example, with sets written as paths:
//
//	A                          .a  .b.x  .b.y
//	B                          .b.y  .c
//	A.Union(B)                 .a  .b.x  .b.y  .c     .a is A's node, .c is B's node
//	A.Intersection(B)          .b.y
//	A.Difference(B)            .a  .b.x
//
// Each operation costs at most O(nodes of both sets). An intersection or difference with a far larger set costs one
// search for each node of the smaller set. An operation with an empty operand, or with two identical operands, costs
// O(1).

// seek returns the position, from start on, of the first node that does not sort before e. It doubles its steps until
// it has passed e, and then searches between the last two steps: O(log d) comparisons for a node d positions away.
func seek(nodes []node, start int, e Element) int {
	lo, hi := start, start // nodes before lo sort before e
	for step := 1; hi < len(nodes) && nodes[hi].elem().Compare(e) < 0; step *= 2 {
		lo, hi = hi+1, hi+step
	}
	hi = min(hi, len(nodes))
	return lo + sort.Search(hi-lo, func(i int) bool { return nodes[lo+i].elem().Compare(e) >= 0 })
}

// setOf returns a set of nodes, or nil for none.
func setOf(nodes []node) *Set {
	if len(nodes) == 0 {
		return nil
	}
	return &Set{nodes: nodes}
}

// Union returns the paths that are in s or in o. If either is empty, Union returns the other.
func (s *Set) Union(o *Set) *Set {
	switch {
	case s == o || o.IsEmpty():
		return s
	case s.IsEmpty():
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

// UnionOf returns the paths that are in any of the sets. It unites them in pairs, which costs O(n log k) for k sets
// with n nodes in total; adding one set after another would cost O(n k).
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
	if s.IsEmpty() || o.IsEmpty() {
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

// Difference returns the paths of s that are not in o. If o removes nothing, it returns s itself. Removing a path does
// not remove the paths below it; [Set.RecursiveDifference] removes these, too. For example, the set .b .b.x without .b
// is .b.x.
func (s *Set) Difference(o *Set) *Set { return s.subtract(o, false) }

// RecursiveDifference returns the paths of s that are neither in o nor below a path of o. If o removes nothing, it
// returns s itself. For example, the set .b .b.x without .b is empty.
func (s *Set) RecursiveDifference(o *Set) *Set { return s.subtract(o, true) }

// AtOrBelow returns the paths of s that are in o or below a path of o.
func (s *Set) AtOrBelow(o *Set) *Set { return s.Difference(s.RecursiveDifference(o)) }

func (s *Set) subtract(o *Set, recursive bool) *Set {
	if s == o {
		return nil
	}
	if s.IsEmpty() || o.IsEmpty() {
		return s
	}
	var out []node // the result for s.nodes[:i]; set at the first change
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

// Leaves returns the paths of s with no other path of s below them. For example, the leaves of .b .b.x are .b.x.
func (s *Set) Leaves() *Set {
	if s.IsEmpty() {
		return nil
	}
	out := make([]node, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = newNode(n.elem(), n.member && n.sub == nil, n.sub.Leaves())
	}
	return &Set{nodes: out}
}

// Filter removes paths from sets. A server has filters for the reset fields of a resource, such as status on the main
// resource.
type Filter interface {
	// Filter returns the paths of set that are kept.
	Filter(set *Set) *Set
}

// Excluding is a filter that removes the paths of a set, and all paths below them.
type Excluding struct{ Set *Set }

// Filter returns the paths of set that are neither in f.Set nor below one of its paths.
func (f Excluding) Filter(set *Set) *Set { return set.RecursiveDifference(f.Set) }
