package fieldpath

// Touches reports whether s and a FieldsV1, as it stands in an unstructured
// object and in canonical form, have a path in common. It looks up what is in one
// of them in the other, so that its cost follows the size of the smaller.
func (s *Set) IntersectsTree(tree map[string]any) bool {
	if s == nil || len(tree) == 0 {
		return false
	}
	if len(tree) < len(s.nodes)/16 {
		return s.intersectsSmall(tree)
	}
	var space [64]byte
	for i := range s.nodes {
		n := &s.nodes[i]
		name := append(n.elem.appendPrefix(space[:0]), n.elem.text...)
		member, ok := tree[string(name)]
		if !ok {
			continue
		}
		if n.intersects(member) {
			return true
		}
	}
	return false
}

func (n *node) intersects(member any) bool {
	below, _ := member.(map[string]any)
	if n.member {
		if _, self := below["."]; self || len(below) == 0 {
			return true
		}
	}
	return n.sub.IntersectsTree(below)
}

// touchesFew is Touches for a tree that has far fewer members than s has nodes,
// as the entry of one of many managers of a list has.
func (s *Set) intersectsSmall(tree map[string]any) bool {
	for text, member := range tree {
		if text == "." {
			continue
		}
		name, err := treeName(text, true)
		if err != nil {
			return true // who decodes it will tell
		}
		if n := s.find(name.elem); n != nil && n.intersects(member) {
			return true
		}
	}
	return false
}
