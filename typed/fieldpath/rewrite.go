package fieldpath

// Rewrite returns s with f done to each element of its first level; f returns
// what the set shall hold of the element, and nothing of it for the zero
// [Entry]. It returns s itself when f changes nothing.
func (s *Set) Rewrite(f func(Element, Entry) Entry) *Set {
	if s == nil {
		return nil
	}
	var out []node // what is left of s.nodes[:i], once it differs from them
	changed := false
	for i := range s.nodes {
		n := &s.nodes[i]
		e := f(n.elem, Entry{n.member, n.sub})
		if e.Below.Empty() {
			e.Below = nil
		}
		if !changed && (e.Member != n.member || e.Below != n.sub) {
			changed = true
			out = append(make([]node, 0, len(s.nodes)), s.nodes[:i]...)
		}
		if changed && (e.Member || e.Below != nil) {
			out = append(out, node{n.elem, e.Member, e.Below})
		}
	}
	if !changed {
		return s
	}
	return setOf(out)
}
