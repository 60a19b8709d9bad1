package fieldpath

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
