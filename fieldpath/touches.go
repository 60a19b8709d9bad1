package fieldpath

// Touches reports whether s and a FieldsV1, as it stands in an unstructured
// object and in canonical form, have a path in common. It looks up what is in s,
// so that its cost follows the size of s alone.
func (s *Set) Touches(tree map[string]any) bool {
	if s == nil || len(tree) == 0 {
		return false
	}
	var space [64]byte
	for i := range s.nodes {
		n := &s.nodes[i]
		name := append(n.elem.appendPrefix(space[:0]), n.elem.text...)
		member, ok := tree[string(name)]
		if !ok {
			continue
		}
		below, _ := member.(map[string]any)
		if n.member {
			if _, self := below["."]; self || len(below) == 0 {
				return true
			}
		}
		if n.sub.Touches(below) {
			return true
		}
	}
	return false
}
