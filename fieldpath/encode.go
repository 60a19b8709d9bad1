package fieldpath

// AppendJSON appends the FieldsV1 of s to b, byte for byte as upstream writes
// it; the empty set is {}.
func (s *Set) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = s.appendMembers(b, false)
	return append(b, '}')
}

// MarshalJSON returns the FieldsV1 of s. It never fails.
func (s *Set) MarshalJSON() ([]byte, error) {
	return s.AppendJSON(make([]byte, 0, len("{}")+s.jsonSize())), nil
}

// jsonSize returns how long the members of s are in JSON, unless names have to be
// escaped that usually have not.
func (s *Set) jsonSize() int {
	if s == nil {
		return 0
	}
	size := len(`".":{},`)
	for i := range s.nodes {
		n := &s.nodes[i]
		size += len(`"f:":{},`) + len(n.elem.text) + n.sub.jsonSize()
		switch n.elem.kind {
		case KindKey: // as a rule each field has a name and a string
			size += 4 * len(n.elem.data.fields)
		case KindValue:
			size += 2
		}
	}
	return size
}

func (s *Set) appendMembers(b []byte, self bool) []byte {
	if s == nil {
		return b
	}
	if self {
		b = append(b, `".":{}`...)
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if self || i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = appendNameBody(n.elem.appendPrefix(b), n.elem.text)
		b = append(b, `":{`...)
		b = n.sub.appendMembers(b, n.member)
		b = append(b, '}')
	}
	return b
}

func (e Element) appendPrefix(b []byte) []byte {
	return append(b, prefixes[e.kind], ':')
}

// prefixes are the letters that stand before the colon in a FieldsV1 member.
var prefixes = [...]byte{KindField: 'f', KindKey: 'k', KindValue: 'v', KindIndex: 'i'}

// Tree returns the FieldsV1 of s as maps of maps, the way it stands in an
// unstructured object. The caller owns it.
func (s *Set) Tree() map[string]any {
	if s == nil {
		return map[string]any{}
	}
	out := make(map[string]any, len(s.nodes)+1)
	for i := range s.nodes {
		n := &s.nodes[i]
		below := n.sub.Tree()
		if n.member && n.sub != nil {
			below["."] = map[string]any{}
		}
		out[n.elem.memberName()] = below
	}
	return out
}

func (e Element) memberName() string {
	return string(append(e.appendPrefix(make([]byte, 0, len(e.text)+2)), e.text...))
}
