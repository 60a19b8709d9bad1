package fieldpath

import (
	"bytes"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/plain"
)

// AppendJSON appends the FieldsV1 of s to b, with the same bytes that upstream writes. The empty set is {}.
func (s *Set) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = s.appendMembers(b, false)
	return append(b, '}')
}

// buffers are reused, so that a text is copied only once, when its length is known.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 8<<10)) }}

const largestBuffer = 64 << 10 // the largest buffer that is reused, in bytes

// MarshalJSON returns the FieldsV1 of s. It never fails.
func (s *Set) MarshalJSON() (out []byte, err error) {
	withBuffer(s.AppendJSON, func(text []byte) { out = bytes.Clone(text) })
	return out, nil
}

// withBuffer passes the output of write to use, in a reused buffer.
func withBuffer(write func([]byte) []byte, use func([]byte)) {
	buffer := buffers.Get().(*[]byte)
	text := write((*buffer)[:0])
	use(text)
	if cap(text) <= largestBuffer {
		*buffer = text
		buffers.Put(buffer)
	}
}

// appendMembers appends the members of the object that encodes s. If self is true, it adds the member ".".
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
		b = plain.AppendEscaped(b, n.text, true)
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

// prefixes are the letters before the colon of a FieldsV1 member name.
var prefixes = [...]byte{fieldKind: 'f', keyKind: 'k', valueKind: 'v', indexKind: 'i'}

// FieldsV1 returns the FieldsV1 of s.
func (s *Set) FieldsV1() *metav1.FieldsV1 {
	out := &metav1.FieldsV1{}
	withBuffer(s.AppendJSON, func(text []byte) { _ = out.UnmarshalJSON(text) }) // copies text; never fails
	return out
}

// Tree returns the FieldsV1 of s as maps of maps, as in an unstructured object. The caller owns the result, except its
// empty maps, which are most of its maps: they are all the same shared map. To add to an empty map, replace it.
func (s *Set) Tree() (tree map[string]any) {
	withBuffer(s.AppendJSON, func(fieldsV1 []byte) { tree = treeOf(fieldsV1) })
	return tree
}

// AppendName appends the name that e has in FieldsV1, such as f:spec. Do not call it on the zero Element.
func (e Element) AppendName(b []byte) []byte {
	return append(append(b, prefixes[e.kind], ':'), e.text...)
}
