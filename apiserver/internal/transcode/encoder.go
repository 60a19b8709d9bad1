package transcode

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// encoder walks an object in JSON.
type encoder struct {
	in  []byte
	at  int
	out []byte

	root    *Message
	version string // the resourceVersion of the object
	inMeta  bool   // the walk is in the metadata of the object
	isDone  bool   // the version was written

	// starts is a stack of where the fields of structs start in out, for those that have to be sorted.
	starts  []int
	scratch []byte
	// canonical are quantities as protobuf has them. There are few different ones.
	canonical map[string]string

	path uint32 // of the current value
	seen []seen

	// of a filter: the leaves that were found, and how many were not
	found uint64
	left  int
}

var encoders = sync.Pool{New: func() any {
	return &encoder{canonical: map[string]string{}, seen: make([]seen, seenSlots)}
}}

// Append appends the protobuf of an object with a resourceVersion, made of its JSON, which has none. The object has
// metadata. ok is false, and nothing is appended, if the JSON is not as encoding/json writes it for the Go type.
func (m *Message) Append(to, data []byte, version string) (out []byte, ok bool) {
	out, rest, ok := m.append(to, data, m, version)
	if !ok || rest > 0 {
		return to, false
	}
	return out, true
}

// metadata is the table of ObjectMeta.
var metadata = sync.OnceValues(func() (*Message, error) { return Of(reflect.TypeFor[metav1.ObjectMeta]()) })

// AppendMetadata appends the protobuf of an ObjectMeta in the same way. Its JSON may have anything behind it.
func AppendMetadata(to, data []byte, version string) (out []byte, ok bool) {
	m, err := metadata()
	if err != nil {
		return to, false
	}
	if out, _, ok = m.append(to, data, nil, version); !ok {
		return to, false
	}
	return out, true
}

// append appends an object of the type of m. rest is how much of data it did not need.
func (m *Message) append(to, data []byte, root *Message, version string) (out []byte, rest int, ok bool) {
	e := encoders.Get().(*encoder)
	e.in, e.at, e.out, e.root, e.version = data, 0, to, root, version
	e.inMeta, e.isDone, e.path = root == nil, false, 0
	ok = e.object(m) && e.isDone
	out, rest = e.out, len(e.in)-e.at
	e.in, e.out, e.starts = nil, nil, e.starts[:0]
	encoders.Put(e)
	return out, rest, ok
}

// peek returns the next byte; 0 at the end.
func (e *encoder) peek() byte {
	if e.at < len(e.in) {
		return e.in[e.at]
	}
	return 0
}

// take skips a byte. It returns false if the next byte is another.
func (e *encoder) take(c byte) bool {
	if e.at < len(e.in) && e.in[e.at] == c {
		e.at++
		return true
	}
	return false
}

// takeNull skips a null.
func (e *encoder) takeNull() bool {
	if e.peek() != 'n' || len(e.in)-e.at < 4 || string(e.in[e.at:e.at+4]) != "null" {
		return false
	}
	e.at += 4
	return true
}

// object encodes an object.
func (e *encoder) object(m *Message) bool {
	if !e.take('{') {
		return false
	}
	var name []byte
	if !e.take('}') {
		var ok bool
		if name, ok = e.name(); !ok {
			return false
		}
	}
	rest, ok := e.members(m, name)
	return ok && rest == nil
}

// name returns the name of a field, and skips the ':' behind it.
func (e *encoder) name() ([]byte, bool) {
	if !e.take('"') {
		return nil, false
	}
	for i, c := range e.in[e.at:] {
		if c != '"' {
			continue // a name with an escape is not found
		}
		name := e.in[e.at : e.at+i]
		e.at += i + 1
		return name, e.take(':')
	}
	return nil, false
}

// nextName returns the name of the next field; nil at the end of the object, behind '}'.
func (e *encoder) nextName() ([]byte, bool) {
	switch e.peek() {
	case ',':
		e.at++
		return e.name()
	case '}':
		e.at++
		return nil, true
	}
	return nil, false
}

// members encodes the members of an object that are fields of m, the first of which has the name. It returns the first
// name that m does not have; nil at the end of the object.
func (e *encoder) members(m *Message, name []byte) (rest []byte, ok bool) {
	start, stack, next := len(e.out), len(e.starts), 0
	for name != nil {
		i := m.find(name, next)
		if i < 0 {
			break
		}
		e.absent(m, next, i)
		if m.runs != nil {
			e.starts = append(e.starts, len(e.out))
		}
		f := &m.fields[i]
		if f.kind == inlined {
			e.out = append(e.out, f.tag...)
			at := e.open()
			if name, ok = e.members(f.message, name); !ok {
				return nil, false
			}
			e.close(at)
		} else {
			if !e.member(m, i) {
				return nil, false
			}
			if name, ok = e.nextName(); !ok {
				return nil, false
			}
		}
		next = i + 1
	}
	e.absent(m, next, len(m.fields))
	if m.runs != nil {
		e.sort(m, start, e.starts[stack:])
		e.starts = e.starts[:stack]
	}
	return name, true
}

// find returns the field with a name, at a place or behind it; -1 if there is none.
func (m *Message) find(name []byte, from int) int {
	if len(name) == 0 {
		return -1
	}
	for i := from; i < len(m.names); i++ {
		if known := m.names[i]; known == string(name) ||
			known == "" && m.fields[i].message.find(name, 0) >= 0 {
			return i
		}
	}
	return -1
}

// absent appends the fields from one to before another, which JSON does not have.
func (e *encoder) absent(m *Message, from, to int) {
	if from == to {
		return
	}
	if m.runs != nil {
		for i := from; i < to; i++ {
			e.starts = append(e.starts, len(e.out)+m.zeroAt[i]-m.zeroAt[from])
		}
	}
	if e.inMeta && from <= m.version && m.version < to {
		e.out = append(e.out, m.zero[m.zeroAt[from]:m.zeroAt[m.version]]...)
		e.out = append(e.out, m.fields[m.version].tag...)
		e.out = binary.AppendUvarint(e.out, uint64(len(e.version)))
		e.out = append(e.out, e.version...)
		e.isDone = true
		from = m.version + 1
	}
	e.out = append(e.out, m.zero[m.zeroAt[from]:m.zeroAt[to]]...)
}

// sort puts the fields of a struct in the order of their numbers. starts are where they start, and they are all that
// was appended after start.
func (e *encoder) sort(m *Message, start int, starts []int) {
	first := m.runs[0]
	if first.from == 0 { // it is in its place
		start = e.endOf(starts, first.to)
	}
	e.scratch = append(e.scratch[:0], e.out[start:]...)
	out := e.out[:start]
	for i, r := range m.runs {
		if i == 0 && first.from == 0 {
			continue
		}
		out = append(out, e.scratch[starts[r.from]-start:e.endOf(starts, r.to)-start]...)
	}
}

// endOf returns where the fields before one end.
func (e *encoder) endOf(starts []int, field int) int {
	if field < len(starts) {
		return starts[field]
	}
	return len(e.out)
}

// member encodes the value of a field.
func (e *encoder) member(m *Message, i int) bool {
	f := &m.fields[i]
	if len(f.tag) == 0 {
		return e.skipString()
	}
	if e.peek() == 'n' {
		// A pointer is nil then, and what is no pointer is as if it were absent. But a Duration is an error.
		if f.kind == duration || !e.takeNull() {
			return false
		}
		e.out = append(e.out, m.zero[m.zeroAt[i]:m.zeroAt[i+1]]...)
		return true
	}
	around := e.below(f.id)
	ok := e.memberValue(m, i)
	e.path = around
	return ok
}

// memberValue encodes the value of a field that is not null.
func (e *encoder) memberValue(m *Message, i int) bool {
	f := &m.fields[i]
	if m == e.root && f.kind == structure && m.names[i] == "metadata" {
		e.inMeta = true
		ok := e.value(f)
		e.inMeta = false
		return ok
	}
	if f.repeat == single && f.kind != structure && f.kind != raw {
		return e.value(f)
	}
	return e.known(f, f.repeat)
}

// known encodes a value that may be known from an object before.
func (e *encoder) known(f *field, repeat repeat) (ok bool) {
	s := e.slot()
	if e.recall(s, f) {
		return true
	}
	start, from := e.at, len(e.out)
	switch repeat {
	case list:
		ok = e.list(f)
	case mapping:
		ok = e.mapping(f)
	default:
		ok = e.value(f)
	}
	if ok {
		e.remember(s, f, start, from)
	}
	return ok
}

func (e *encoder) list(f *field) bool {
	if !e.take('[') {
		return false
	}
	if e.take(']') {
		return true
	}
	for i := uint32(1); ; i++ {
		var ok bool
		if f.kind == structure {
			around := e.below(i)
			ok = e.known(f, single)
			e.path = around
		} else {
			ok = e.value(f)
		}
		if !ok {
			return false
		}
		if !e.take(',') {
			return e.take(']')
		}
	}
}

// mapping encodes a map, whose keys are sorted in JSON as in protobuf.
func (e *encoder) mapping(f *field) bool {
	if !e.take('{') {
		return false
	}
	if e.take('}') {
		return true
	}
	var last []byte
	for first := true; ; first = false {
		e.out = append(e.out, f.tag...)
		at := e.open()
		key, plain, ok := e.scan()
		if !ok || !plain || !e.take(':') || !first && bytes.Compare(last, key) >= 0 {
			return false
		}
		last = key
		e.out = append(e.out, 1<<3|wireBytes)
		e.bytes(key)
		if !e.value(f.value) {
			return false
		}
		e.close(at)
		if !e.take(',') {
			return e.take('}')
		}
	}
}

// open reserves a byte for a size.
func (e *encoder) open() int {
	e.out = append(e.out, 0)
	return len(e.out)
}

// close sets the size of what was appended since open, which returned at.
func (e *encoder) close(at int) {
	n := len(e.out) - at
	if n < 0x80 {
		e.out[at-1] = byte(n)
		return
	}
	var size [binary.MaxVarintLen64]byte
	width := binary.PutUvarint(size[:], uint64(n))
	e.out = append(e.out, size[1:width]...)
	copy(e.out[at-1+width:], e.out[at:at+n])
	copy(e.out[at-1:], size[:width])
}
