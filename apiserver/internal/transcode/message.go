// Package transcode writes the protobuf of Kubernetes' Go types, made of their JSON, without decoding it into a struct.
//
// A [Message] is the table of a Go type: the fields in the order in which encoding/json writes them, each with its
// protobuf tag. [Message.Append] walks compact JSON and a table side by side, and appends what the generated Marshal
// method of the decoded struct would write, byte for byte:
//
//	JSON       {"name":"a","replicas":3}
//	fields     name 1 string     paused 2 bool     replicas 3 int32
//	protobuf   0a 01 61          10 00             18 03
//
// Those methods write every field that is no pointer, list or map, whether it is set or not. So a table holds the bytes
// of absent fields, which go between those that JSON has. Some structs have their fields in another order than that of
// their numbers: a struct's bytes are put in order at its end (encoder.sort).
//
// Append accepts only what encoding/json writes for the Go type: no white space, fields in order and once, keys of maps
// sorted, times and numbers in their usual form. It refuses everything else, and the caller decodes the object then.
// What it accepts is valid JSON. It takes one pass, and allocates nothing but out.
package transcode

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Message is the table of a Go type.
//
// Invariants, for n = len(fields):
//
//	len(names) == n, len(zeroAt) == n+1
//	zero[zeroAt[i]:zeroAt[i+1]] is field i if JSON does not have it
//	runs, concatenated, are the fields in the order of their numbers; nil if that is the order of fields
type Message struct {
	fields []field
	names  []string // "" for a field whose own fields JSON has in its place
	zero   []byte
	zeroAt []int
	runs   []run
	// version is the field that the object's resourceVersion goes to; -1 if this is no ObjectMeta.
	version int
}

// run is the fields from one number to before another.
type run struct{ from, to int }

// A field is how a value in JSON becomes protobuf.
type field struct {
	id      uint32 // another one for each field
	tag     []byte // field number and wire type; empty: it is not in protobuf
	kind    kind
	repeat  repeat
	message *Message // of structs
	value   *field   // of maps
}

// kind is what a value is.
type kind uint8

const (
	text kind = iota
	binaryText
	boolean
	number32
	number64
	structure
	inlined // a struct whose fields JSON has in its place
	quantity
	second
	microsecond
	duration
	intOrString
	raw   // any JSON, as its bytes
	texts // a list of strings that is a message
)

// repeat is how many values a field has.
type repeat uint8

const (
	single repeat = iota
	list
	mapping
)

// specials are the types with methods of their own.
var specials = map[reflect.Type]kind{
	reflect.TypeFor[resource.Quantity]():    quantity,
	reflect.TypeFor[metav1.Time]():          second,
	reflect.TypeFor[metav1.MicroTime]():     microsecond,
	reflect.TypeFor[metav1.Duration]():      duration,
	reflect.TypeFor[intstr.IntOrString]():   intOrString,
	reflect.TypeFor[metav1.FieldsV1]():      raw,
	reflect.TypeFor[runtime.RawExtension](): raw,
}

// zeros are the values of specials that are not set, as the content of their messages.
var zeros = map[kind][]byte{
	quantity: {1<<3 | wireBytes, 1, '0'}, duration: {1 << 3, 0}, intOrString: {1 << 3, 0, 2 << 3, 0, 3<<3 | wireBytes, 0},
}

// Wire types.
const (
	wireVarint = 0
	wireBytes  = 2
)

var (
	tablesLock sync.Mutex
	tables     = map[reflect.Type]*Message{}
	lastID     uint32
)

// Of returns the table of a struct. There is none for types with values that this package does not know.
func Of(t reflect.Type) (*Message, error) {
	tablesLock.Lock()
	defer tablesLock.Unlock()
	return messageOf(t)
}

// messageOf returns the table of a struct. The caller holds the lock.
func messageOf(t reflect.Type) (*Message, error) {
	if m, ok := tables[t]; ok {
		return m, nil
	}
	m := &Message{version: -1}
	tables[t] = m // for pointers to itself
	if err := m.addFields(t); err != nil {
		delete(tables, t)
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return m, nil
}

func (m *Message) addFields(t reflect.Type) error {
	var numbers []int
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		tag := f.Tag.Get("protobuf")
		if f.Anonymous && tag == "" && f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			for _, name := range []string{"kind", "apiVersion"} {
				numbers = append(numbers, 0)
				m.add(name, field{}, false)
			}
			continue
		}
		isInlined := f.Anonymous && name == ""
		if tag == "" || !f.IsExported() || name == "-" || name == "" && !isInlined ||
			slices.Contains(strings.Split(options, ","), "string") {
			return fmt.Errorf("%s: expected tags for json and protobuf", f.Name)
		}
		field, err := fieldOf(f.Type, isInlined)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		number, err := field.setTag(tag)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if t == reflect.TypeFor[metav1.ObjectMeta]() && name == "resourceVersion" {
			m.version = len(m.fields)
		}
		numbers = append(numbers, number)
		m.add(name, field, f.Type.Kind() != reflect.Pointer)
	}
	m.zeroAt = append(m.zeroAt, len(m.zero))
	if m.setRuns(numbers); m.runs != nil && m.version >= 0 {
		return errors.New("expected the fields of metadata in the order of their numbers")
	}
	return nil
}

// add adds a field. isWritten is whether it is written if it is not set, if it is of such a kind.
func (m *Message) add(name string, f field, isWritten bool) {
	lastID++
	f.id = lastID
	m.fields, m.names = append(m.fields, f), append(m.names, name)
	m.zeroAt = append(m.zeroAt, len(m.zero))
	if !isWritten || f.repeat != single || f.kind == binaryText {
		return
	}
	m.zero = append(m.zero, f.tag...)
	switch f.kind {
	case boolean, number32, number64, text:
		m.zero = append(m.zero, 0)
	case structure, inlined:
		m.zero = append(binary.AppendUvarint(m.zero, uint64(len(f.message.zero))), f.message.sorted()...)
	default:
		m.zero = append(binary.AppendUvarint(m.zero, uint64(len(zeros[f.kind]))), zeros[f.kind]...)
	}
}

// setRuns sets the order of fields by their numbers.
func (m *Message) setRuns(numbers []int) {
	order := make([]int, len(numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
	for _, i := range order {
		if last := len(m.runs) - 1; last >= 0 && m.runs[last].to == i {
			m.runs[last].to++
		} else {
			m.runs = append(m.runs, run{i, i + 1})
		}
	}
	if len(m.runs) == 1 {
		m.runs = nil
	}
}

// sorted returns the bytes of an object without fields.
func (m *Message) sorted() (out []byte) {
	if m.runs == nil {
		return m.zero
	}
	for _, r := range m.runs {
		out = append(out, m.zero[m.zeroAt[r.from]:m.zeroAt[r.to]]...)
	}
	return out
}

// fieldOf returns how values of a type are encoded.
func fieldOf(t reflect.Type, isInlined bool) (f field, err error) {
	if isInlined {
		if t.Kind() != reflect.Struct {
			return f, fmt.Errorf("expected a struct, got %s", t)
		}
		f.kind = inlined
		f.message, err = messageOf(t)
		return f, err
	}
	if t.Kind() == reflect.Pointer {
		return valueOf(t.Elem())
	}
	switch {
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		value, err := valueOf(t.Elem())
		value.tag = []byte{2<<3 | wireBytes}
		if err == nil && value.wire() != wireBytes {
			err = fmt.Errorf("expected values with a length, got %s", t)
		}
		return field{repeat: mapping, value: &value}, err
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		f, err = valueOf(t.Elem())
		f.repeat = list
		return f, err
	}
	return valueOf(t)
}

// valueOf returns how single values of a type are encoded.
func valueOf(t reflect.Type) (f field, err error) {
	if special, ok := specials[t]; ok {
		return field{kind: special}, nil
	}
	type marshaler interface{ Marshal() ([]byte, error) }
	pointer, hasOwn := reflect.PointerTo(t), false
	for _, own := range []reflect.Type{
		reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](),
	} {
		hasOwn = hasOwn || pointer.Implements(own)
	}
	switch {
	case hasOwn:
		return f, fmt.Errorf("%s has a JSON of its own", t)
	case t.Kind() == reflect.String:
		return field{kind: text}, nil
	case t.Kind() == reflect.Bool:
		return field{kind: boolean}, nil
	case t.Kind() == reflect.Int32:
		return field{kind: number32}, nil
	case t.Kind() == reflect.Int64:
		return field{kind: number64}, nil
	case t.Kind() == reflect.Struct:
		m, err := messageOf(t)
		return field{kind: structure, message: m}, err
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return field{kind: binaryText}, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String && t.Implements(reflect.TypeFor[marshaler]()):
		return field{kind: texts}, nil
	}
	return f, fmt.Errorf("unknown type %s", t)
}

func (f *field) wire() int {
	if f.repeat != mapping && (f.kind == boolean || f.kind == number32 || f.kind == number64) {
		return wireVarint
	}
	return wireBytes
}

// setTag sets the tag of a field, of which text is the struct tag, and returns its number. The wire type in the struct
// tag is not that of the generated methods: many say bytes for integers.
func (f *field) setTag(text string) (number int, err error) {
	_, rest, _ := strings.Cut(text, ",")
	digits, _, _ := strings.Cut(rest, ",")
	if number, err = strconv.Atoi(digits); err != nil || number <= 0 {
		return 0, fmt.Errorf("expected a field number in the protobuf tag %q", text)
	}
	f.tag = binary.AppendUvarint(nil, uint64(number)<<3|uint64(f.wire()))
	return number, nil
}
