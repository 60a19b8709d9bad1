package fieldpath

import (
	"bytes"
	"sync"
)

// AppendJSON appends the FieldsV1 of s to b, in the bytes that upstream writes. The empty set is {}.
func (s *Set) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = s.appendMembers(b, false)
	return append(b, '}')
}

// buffers are reused, so a text is copied once, when its length is known.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 8<<10)) }}

const largestBuffer = 64 << 10 // the largest buffer that is reused, in bytes

// MarshalJSON returns the FieldsV1 of s. It never fails.
func (s *Set) MarshalJSON() ([]byte, error) {
	buffer := buffers.Get().(*[]byte)
	text := s.AppendJSON((*buffer)[:0])
	out := bytes.Clone(text)
	if cap(text) <= largestBuffer {
		*buffer = text
		buffers.Put(buffer)
	}
	return out, nil
}

// appendMembers appends the members of the object of s. self adds the member ".".
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
		b = append(b, '"', prefixes[n.kind], ':')
		b = appendNameBody(b, n.text)
		if n.sub == nil {
			b = append(b, `":{}`...)
			continue
		}
		b = append(b, `":{`...)
		b = n.sub.appendMembers(b, n.member)
		b = append(b, '}')
	}
	return b
}

func (e Element) appendPrefix(b []byte) []byte {
	return append(b, prefixes[e.kind], ':')
}

// prefixes are the letters before the colon of a FieldsV1 member name.
var prefixes = [...]byte{KindField: 'f', KindKey: 'k', KindValue: 'v', KindIndex: 'i'}

// Tree returns the FieldsV1 of s as maps of maps, the form of an unstructured object. The caller owns it.
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
		out[n.elem().memberName()] = below
	}
	return out
}

// memberName returns the name of e in a FieldsV1 of maps.
func (e Element) memberName() string { return string(prefixes[e.kind]) + ":" + e.text }
