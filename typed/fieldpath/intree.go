package fieldpath

// IntersectTree returns the paths of s that are also in tree, a FieldsV1 of an unstructured object in canonical form
// ([IsCanonical]). It looks up the members of s in tree and decodes nothing, so that it costs O(elements of s): a write
// changes little of what an entry owns.
//
//	s.IntersectTree(tree)  ==  s.Intersection(FromTree(tree))
func (s *Set) IntersectTree(tree map[string]any) *Set {
	if s == nil || len(tree) == 0 {
		return nil
	}
	var b Builder
	var space [64]byte
	for i := range s.nodes {
		n := &s.nodes[i]
		name := append(n.elem.appendPrefix(space[:0]), n.elem.text...)
		v, ok := tree[string(name)]
		if !ok {
			continue
		}
		member, _ := v.(map[string]any)
		_, mark := member["."]
		b.Add(n.elem, n.member && (mark || len(member) == 0), n.sub.IntersectTree(member))
	}
	return b.Set()
}
