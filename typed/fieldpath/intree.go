package fieldpath

import (
	"maps"
	"reflect"
)

// The operations of this file are those of algebra.go where the other operand is
// a FieldsV1 as it stands in an unstructured object, in canonical form, which is
// neither decoded nor changed: they look up what is in the set, and share what
// they need not change. A write changes little of what most entries own.
//
//	FromTree(s.AddedTo(tree))       == FromTree(tree).Union(s)
//	FromTree(s.TakenFrom(tree))     == FromTree(tree).Difference(s)
//	s.Within(tree)                  == s.Intersection(FromTree(tree))

// Within returns the paths of s that a FieldsV1 has, too.
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

// TakenFrom returns a FieldsV1 without the paths of s; tree itself when it has
// none of them.
func (s *Set) SubtractFrom(tree map[string]any) map[string]any {
	if s == nil || len(tree) == 0 {
		return tree
	}
	out := tree
	s.inTree(tree, func(n *node, name string, member map[string]any) {
		was := isMember(member)
		below := n.sub.SubtractFrom(member)
		stays := was && !n.member
		if was == stays && sameTree(below, member) {
			return
		}
		if sameTree(out, tree) {
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

// AddedTo returns a FieldsV1 with the paths of s; tree itself when it has them all.
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
		if there && was == is && sameTree(below, member) {
			continue
		}
		if sameTree(out, tree) {
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

// withMark returns a member of a FieldsV1 with what is below, owned itself or not;
// nil when nothing is left of it. below is was, which is not changed, or new.
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
	case sameTree(below, was):
		below = maps.Clone(below)
	}
	if member {
		below["."] = map[string]any{}
	} else {
		delete(below, ".")
	}
	return below
}

// isMember reports whether the path of a member that is there is in the set.
func isMember(member map[string]any) bool {
	if len(member) == 0 {
		return true
	}
	_, mark := member["."]
	return mark
}

// inTree calls f for each node of s that has a member in tree, with its name; what
// is no map is as good as not there. It looks up what is in the smaller of both.
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

// sameTree reports whether a and b are one map in memory.
func sameTree(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
