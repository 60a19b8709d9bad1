package fieldpath

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
