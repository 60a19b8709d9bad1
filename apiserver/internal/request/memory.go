package request

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// A body is decoded only if the resulting Go structs take at most minMemory, plus memoryPerByte for each byte of the
// body (spec rule 12.9). An empty Container of a Pod takes 2 bytes in protobuf or 3 bytes in a JSON list, but 600 bytes
// as a struct. Objects that people and controllers write have far more text for each struct. The densest of them are
// CustomResourceDefinitions, with 35 bytes of structs for each byte of the body. Custom resources become maps and lists
// of any, which need no limit, because they take about as much memory for each byte as the densest objects.
const (
	minMemory     = 4 << 20
	memoryPerByte = 40
	// maxValue is the most memory that a value takes: every struct is smaller than 2 KiB, and a list may take twice the
	// size of its items.
	maxValue = 4 << 10
)

// mapEntry is the memory of a map entry without its value.
const mapEntry = 64

// A Target returns the type into which a body is decoded. Its argument is the kind that the body names, without the
// parts that the body omits. If the body is not decoded into a Go struct, the type is nil.
type Target func(named schema.GroupVersionKind) reflect.Type

// As is the Target that always returns the type t.
func As(t reflect.Type) Target { return func(schema.GroupVersionKind) reflect.Type { return t } }

// Kinds is the Target for the kinds of a creater. If a body omits its version or its kind, the parameter kind supplies
// them.
func Kinds(creater runtime.ObjectCreater, kind schema.GroupVersionKind) Target {
	return func(named schema.GroupVersionKind) reflect.Type {
		if named.Version == "" {
			named.Group, named.Version = kind.Group, kind.Version
		}
		named.Kind = cmp.Or(named.Kind, kind.Kind)
		obj, err := creater.New(named)
		if _, ok := obj.(runtime.Unstructured); ok || err != nil { // the decoder reports an unknown kind
			return nil
		}
		return reflect.TypeOf(obj)
	}
}

// CheckJSON returns an error if JSON would take too much memory when it is decoded.
func (t Target) CheckJSON(data []byte) error {
	w := newWeight(len(data))
	values := bytes.Count(data, []byte(",")) + bytes.Count(data, []byte("{")) + bytes.Count(data, []byte("["))
	if values*maxValue < w.limit {
		return nil // most bodies are that small
	}
	var named schema.GroupVersionKind
	if found, err := kubejson.DefaultMetaFactory.Interpret(data); err == nil {
		named = *found
	}
	if as := t(named); as != nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		w.json(d, as)
	}
	return w.err()
}

// checkProto is CheckJSON for protobuf. It also limits the depth of nested messages.
func (t Target) checkProto(data []byte, nesting int) error {
	var body runtime.Unknown
	if err := body.Unmarshal(bytes.TrimPrefix(data, envelope)); err != nil {
		return nil // the decoder reports this error
	}
	w := newWeight(len(data))
	if !w.proto(body.Raw, t(body.GroupVersionKind()), nesting) {
		return apierrors.NewBadRequest(fmt.Sprintf(tooDeep, nesting))
	}
	return w.err()
}

// weight counts the memory that values take: left is what remains of limit.
type weight struct{ left, limit int }

func newWeight(size int) *weight {
	limit := minMemory + memoryPerByte*size
	return &weight{limit, limit}
}

func (w *weight) err() error {
	if w.left >= 0 {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"the body of the request would take more than %d bytes of memory", w.limit))
}

// pointee subtracts the memory of the value to which a pointer points, and returns its type. It returns other types
// unchanged.
func (w *weight) pointee(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
		w.left -= int(t.Size())
	}
	return t
}

// item subtracts the memory of a list item or a map entry, and returns its type. A growing list takes up to twice the
// size of its items.
func (w *weight) item(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Map {
		w.left -= mapEntry + int(t.Elem().Size())
	} else {
		w.left -= 2 * int(t.Elem().Size())
	}
	return t.Elem()
}

// fields are the types of the fields of a struct.
type fields struct {
	byName   map[string]reflect.Type // by name in JSON
	byNumber map[uint64]reflect.Type // by number in protobuf
}

var known sync.Map // reflect.Type to fields

func fieldsOf(t reflect.Type) fields {
	if found, ok := known.Load(t); ok {
		return found.(fields)
	}
	out := fields{map[string]reflect.Type{}, map[uint64]reflect.Type{}}
	for i := range t.NumField() {
		f := t.Field(i)
		if tag := strings.Split(f.Tag.Get("protobuf"), ","); len(tag) > 1 {
			number, _ := strconv.ParseUint(tag[1], 10, 64)
			out.byNumber[number] = f.Type
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			maps.Copy(out.byName, fieldsOf(f.Type).byName)
		case f.IsExported():
			out.byName[cmp.Or(name, f.Name)] = f.Type
		}
	}
	known.Store(t, out)
	return out
}

// json subtracts the memory of the next value of a decoder. t is the type into which the value is decoded; nil if it is
// not decoded into a Go type. It returns false if the value is not valid.
func (w *weight) json(d *json.Decoder, t reflect.Type) bool {
	token, err := d.Token()
	first, ok := token.(json.Delim)
	if !ok {
		w.pointee(t)
		return err == nil
	}
	t = w.decoded(t, first)
	for d.More() && w.left >= 0 {
		var item reflect.Type
		if first == '{' {
			if token, err = d.Token(); err != nil {
				return false
			}
		}
		switch name, _ := token.(string); {
		case t == nil:
		case t.Kind() == reflect.Map && first == '{', t.Kind() == reflect.Slice && first == '[':
			item = w.item(t)
		case t.Kind() == reflect.Struct && first == '{':
			item = fieldsOf(t).byName[name]
		}
		if !w.json(d, item) {
			return false
		}
	}
	_, err = d.Token()
	return err == nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// decoded returns the type that the members or items of a value are decoded into. A type that decodes itself, such as
// JSONSchemaPropsOrArray, decodes into one of its fields, so decoded returns the type of that field.
func (w *weight) decoded(t reflect.Type, first json.Delim) reflect.Type {
	if t = w.pointee(t); t == nil || !reflect.PointerTo(t).Implements(unmarshaler) {
		return t
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		switch fieldType := t.Field(i).Type; {
		case first == '{' && fieldType.Kind() == reflect.Pointer:
			return w.pointee(fieldType)
		case first == '[' && fieldType.Kind() == reflect.Slice:
			return fieldType
		}
	}
	return nil
}

// proto subtracts the memory of the values in a protobuf message that is decoded into type t, and reports whether
// messages are nested no deeper than levels. A value without a type may be a message, so proto reads it as a message.
// Text that happens to parse as a message does not exceed levels, because it is nested only a few levels deep. Like the
// decoders of k8s.io/api, proto accepts non-canonical varints and groups without an end. It reads each byte once.
func (w *weight) proto(data []byte, t reflect.Type, levels int) bool {
	var numbers map[uint64]reflect.Type
	if t = w.pointee(t); t != nil && t.Kind() != reflect.Struct {
		return true
	} else if t != nil {
		numbers = fieldsOf(t).byNumber
	}
	return levels > 0 && eachField(data, func(number uint64, value []byte) bool {
		fieldType := numbers[number]
		switch {
		case w.left < 0:
			return true
		case fieldType == nil || fieldType.Kind() != reflect.Slice && fieldType.Kind() != reflect.Map:
			return w.proto(value, fieldType, levels-1)
		case fieldType.Kind() == reflect.Map: // an entry is a message of a key and a value
			entries := map[uint64]reflect.Type{1: fieldType.Key(), 2: w.item(fieldType)}
			return eachField(value, func(number uint64, value []byte) bool {
				return w.proto(value, entries[number], levels-1)
			})
		case fieldType.Elem().Size() <= 8 && fieldType.Elem().Kind() != reflect.Pointer:
			w.left -= 2 * int(fieldType.Elem().Size()) * len(value) // each byte may be a number
			return true
		}
		return w.proto(value, w.item(fieldType), levels-1)
	})
}

// eachField calls do for each length-delimited field of a protobuf message. If do returns false, it stops and returns
// false.
func eachField(data []byte, do func(number uint64, value []byte) bool) bool {
	for len(data) > 0 {
		var tag, length uint64
		tag, data = varint(data)
		switch tag & 7 {
		case 0:
			_, data = varint(data)
		case 1:
			data = data[min(8, len(data)):]
		case 2:
			if length, data = varint(data); length > uint64(len(data)) {
				return true
			}
			if !do(tag>>3, data[:length]) {
				return false
			}
			data = data[length:]
		case 3, 4: // the fields of a group belong to the message
		case 5:
			data = data[min(4, len(data)):]
		default:
			return true
		}
	}
	return true
}
