package fieldpath

// The operations of this file walk two sets side by side, in the order of their
// elements, and share with their operands every branch that they need not
// change. Each costs O(nodes of both sets), and an intersection or difference with
// a set that is far larger only a search for each node; an operand that is the
// other one, or empty, costs nothing.

// seek returns the position, from start on, of the first node that does not sort
// before e. It goes by steps that double, and then by halves: next to nothing
// where e is near, and O(log n) where a few elements meet many.
func seek(nodes []node, start int, e Element) int {
	lo, step := start, 1
	for lo < len(nodes) && nodes[lo].elem.Compare(e) < 0 {
		if lo+step >= len(nodes) || nodes[lo+step].elem.Compare(e) >= 0 {
			// It is within (lo, lo+step].
			lo++
			hi := min(lo+step-1, len(nodes))
			for lo < hi {
				mid := int(uint(lo+hi) >> 1)
				if nodes[mid].elem.Compare(e) < 0 {
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

// Union returns the paths that are in s or in o.
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
		switch c := a.elem.Compare(b.elem); {
		case c < 0:
			out = append(out, *a)
			i++
		case c > 0:
			out = append(out, *b)
			j++
		default:
			out = append(out, node{a.elem, a.member || b.member, a.sub.Union(b.sub)})
			i++
			j++
		}
	}
	out = append(out, s.nodes[i:]...)
	out = append(out, o.nodes[j:]...)
	return &Set{nodes: out}
}

// UnionOf returns the paths that are in any of the sets. It unites them by halves,
// which costs O(n log k) for k sets of n nodes; one after the other would cost
// O(n k).
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
		switch c := a.elem.Compare(b.elem); {
		case c < 0:
			i = seek(s.nodes, i+1, b.elem)
		case c > 0:
			j = seek(o.nodes, j+1, a.elem)
		default:
			if n := (node{a.elem, a.member && b.member, a.sub.Intersection(b.sub)}); n.member || n.sub != nil {
				out = append(out, n)
			}
			i++
			j++
		}
	}
	return setOf(out)
}

// Difference returns the paths of s that are not in o. A path below one that is
// in o stays, unless it is itself in o; see [Set.RecursiveDifference].
func (s *Set) Difference(o *Set) *Set { return s.subtract(o, false) }

// RecursiveDifference returns the paths of s that are neither in o nor below a
// path of o.
func (s *Set) RecursiveDifference(o *Set) *Set { return s.subtract(o, true) }

func (s *Set) subtract(o *Set, recursive bool) *Set {
	if s == o {
		return nil
	}
	if s.Empty() || o.Empty() {
		return s
	}
	var out []node // what is left of s.nodes[:i], once it differs from them
	changed := false
	i, j := 0, 0
	for i < len(s.nodes) {
		a := &s.nodes[i]
		j = seek(o.nodes, j, a.elem)
		rest := *a
		if j < len(o.nodes) && o.nodes[j].elem.Equal(a.elem) {
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

// Leaves returns the paths of s that no other path of s goes on from.
func (s *Set) Leaves() *Set {
	if s.Empty() {
		return nil
	}
	out := make([]node, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = node{n.elem, n.member && n.sub == nil, n.sub.Leaves()}
	}
	return &Set{nodes: out}
}
