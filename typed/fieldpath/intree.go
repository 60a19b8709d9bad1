package fieldpath

import (
	"maps"

	"github.com/tenure-ssa/tenure/internal/trees"
)

// The operations of this file are those of algebra.go where one operand is a FieldsV1 of an unstructured object, in
// canonical form ([IsCanonical]). They neither decode nor change it: they look up the members of the set in it, and
// share what they need not change. Their cost follows the size of the set, since most writes change little of what an
// entry owns:
//
//	FromTree(s.AddTo(tree))         ==  FromTree(tree).Union(s)
//	FromTree(s.SubtractFrom(tree))  ==  FromTree(tree).Difference(s)
//	s.IntersectTree(tree)           ==  s.Intersection(FromTree(tree))
//	s.IntersectsTree(tree)          ==  !s.IntersectTree(tree).Empty()
//
// For example, with s = .spec.image and tree = {f:spec: {f:image: {}, f:replicas: {}}}:
//
//	s.SubtractFrom(tree)            {f:spec: {f:replicas: {}}}, with a new map for each of the two levels

// IntersectTree returns the paths of s that are also in a FieldsV1.
func (s *Set) IntersectTree(tree map[string]any) *Set {
	if s == nil || len(tree) == 0 {
		return nil
	}
	var out []node
	s.inTree(tree, func(n *node, _ string, member map[string]any) {
		both := node{elem: n.elem, member: n.member && isMember(member), sub: n.sub.IntersectTree(member)}
		if both.member || both.sub != nil {
			out = append(out, both)
		}
	})
	b := Builder{nodes: out}
	return b.Set()
}

// SubtractFrom returns a FieldsV1 without the paths of s; tree itself if it has none of them.
func (s *Set) SubtractFrom(tree map[string]any) map[string]any {
	if s == nil || len(tree) == 0 {
		return tree
	}
	out := tree
	s.inTree(tree, func(n *node, name string, member map[string]any) {
		was := isMember(member)
		below := n.sub.SubtractFrom(member)
		stays := was && !n.member
		if was == stays && trees.SameMap(below, member) {
			return
		}
		if trees.SameMap(out, tree) {
			out = maps.Clone(tree)
		}
		if below = withMark(below, member, stays); below == nil {
			delete(out, name)
		} else {
			out[name] = below
		}
	})
	return out
}

// AddTo returns a FieldsV1 with the paths of s added; tree itself if it has them all.
func (s *Set) AddTo(tree map[string]any) map[string]any {
	if s == nil {
		return tree
	}
	out := tree
	for i := range s.nodes {
		n := &s.nodes[i]
		var space [64]byte
		name := append(n.elem.appendPrefix(space[:0]), n.elem.text...)
		member, there := tree[string(name)].(map[string]any)
		below := n.sub.AddTo(member)
		was := there && isMember(member)
		is := was || n.member
		if there && was == is && trees.SameMap(below, member) {
			continue
		}
		if trees.SameMap(out, tree) {
			out = make(map[string]any, len(tree)+len(s.nodes)-i)
			maps.Copy(out, tree)
		}
		if below = withMark(below, member, is); below == nil {
			below = map[string]any{}
		}
		out[string(name)] = below
	}
	return out
}

// withMark returns a member of a FieldsV1 whose content is below, and which is itself owned if member; nil if nothing
// is left. was is the old content and is not changed: below is was, or a new map.
func withMark(below, was map[string]any, member bool) map[string]any {
	_, mark := below["."]
	count := len(below)
	if mark {
		count--
	}
	switch {
	case count == 0 && member:
		return map[string]any{}
	case count == 0:
		return nil
	case mark == member:
		return below
	case trees.SameMap(below, was):
		below = maps.Clone(below)
	}
	if member {
		below["."] = map[string]any{}
	} else {
		delete(below, ".")
	}
	return below
}

// isMember reports whether the path of an existing member is in the set.
func isMember(member map[string]any) bool {
	if len(member) == 0 {
		return true
	}
	_, mark := member["."]
	return mark
}

// inTree calls f for each node of s that tree has a member of, with the member's name. It ignores members that are
// not maps. It walks the smaller of the two operands.
func (s *Set) inTree(tree map[string]any, f func(n *node, name string, member map[string]any)) {
	if len(tree) < len(s.nodes)/16 {
		for name, v := range tree {
			member, ok := v.(map[string]any)
			if !ok || name == "." {
				continue
			}
			parsed, err := treeName(name, true)
			if err != nil {
				continue
			}
			if n := s.find(parsed.elem); n != nil {
				f(n, name, member)
			}
		}
		return
	}
	var space [64]byte
	for i := range s.nodes {
		n := &s.nodes[i]
		name := append(n.elem.appendPrefix(space[:0]), n.elem.text...)
		if member, ok := tree[string(name)].(map[string]any); ok {
			f(n, string(name), member)
		}
	}
}

// IntersectsTree reports whether s and a FieldsV1, in canonical form, have a path in common. It walks the smaller of
// the two operands and looks up its members in the other.
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

// intersectsSmall is IntersectsTree for a tree that has far fewer members than s has nodes, such as the entry of one
// of many managers of a list.
func (s *Set) intersectsSmall(tree map[string]any) bool {
	for text, member := range tree {
		if text == "." {
			continue
		}
		name, err := treeName(text, true)
		if err != nil {
			return true // the caller decodes the tree and gets the error
		}
		if n := s.find(name.elem); n != nil && n.intersects(member) {
			return true
		}
	}
	return false
}
