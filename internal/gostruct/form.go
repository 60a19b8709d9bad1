package gostruct

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// kind is how values of a Go type are read. The switches over it in value.go, tree.go and diff.go handle all kinds.
type kind uint8

const (
	noKind        kind = iota // has no JSON value: see form.err
	nullKind                  // a nil pointer, interface, slice or map; see indirect
	stringKind                // also typed strings
	boolKind                  //
	intKind                   // int64
	uintKind                  // int64, or no JSON value if it does not fit
	floatKind                 // float64
	bytesKind                 // []byte: a string, in base64
	listKind                  // a slice
	mapKind                   // keys of a string kind
	structKind                //
	pointerKind               // the value that it points to, or null
	interfaceKind             // the value in it, or null
	convertKind               // a method returns the JSON value
)

// form is the compiled way in which values of one Go type are read.
//
//	elem != nil   ⇔ kind is listKind, mapKind or pointerKind
//	only a structKind has fields (sorted by name), declared (in the order of the source) and byName;
//	  for each f in fields and in declared, byName[f.name] == f
//	err != nil    ⇔ kind is noKind
type form struct {
	kind     kind
	typ      reflect.Type
	elem     *form
	fields   []*field
	declared []*field
	byName   map[string]*field
	err      error

	onlyPtr bool // convertKind: only a pointer to the type has the method

	unmarshals bool // convertKind: a struct that only its UnmarshalJSON decodes
	isScalar   bool // convertKind: one of scalarTypes

	surely typed.Scalar // the kind of every value that is not null; 0 if it depends on the value

	lastTypes atomic.Pointer[fieldTypes] // see typesIn
}

// field is a field of a struct, including fields of embedded structs.
type field struct {
	name      string
	head      string // the beginning of its member in FieldsV1
	outer     []step // the embedded structs that contain it, outermost first
	index     int
	form      *form
	omitEmpty bool
	omitZero  func(reflect.Value) bool
	// before is a field with the same name that precedes this field in the source. It is used if this field is omitted.
	before *field
}

// step leads from a struct to a struct embedded in it.
type step struct {
	index    int
	pointer  bool
	omitZero func(reflect.Value) bool
}

// converter and failingConverter are json.Marshalers that also return their JSON value without encoding it.
type (
	converter        interface{ ToUnstructured() any }
	failingConverter interface{ ToUnstructuredWithError() (any, error) }
	zeroer           interface{ IsZero() bool }
)

var (
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	zeroerType      = reflect.TypeFor[zeroer]()
)

// scalarTypes are types of the API whose MarshalJSON returns a scalar or null, with the kind of the scalar. If == says
// that two values of such a type are equal, their JSON is equal, too; and == does not panic for them.
var scalarTypes = map[reflect.Type]typed.Scalar{
	reflect.TypeFor[resource.Quantity]():  typed.String,
	reflect.TypeFor[metav1.Time]():        typed.String,
	reflect.TypeFor[metav1.MicroTime]():   typed.String,
	reflect.TypeFor[metav1.Duration]():    typed.String,
	reflect.TypeFor[intstr.IntOrString](): 0,
}

var (
	forms sync.Map // reflect.Type → *form, with all forms that it refers to
	// compiling is held while types are compiled. Therefore no caller gets an incomplete recursive type, and each type has
	// only one form, so forms can be compared as pointers.
	compiling sync.Mutex
)

// formOf returns the form of a type. The first call for a type compiles the type and the types in it. Later calls look
// up the form.
func formOf(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	compiling.Lock()
	defer compiling.Unlock()
	c := compiler{}
	f := c.form(t)
	for typ, f := range c {
		forms.Store(typ, f)
	}
	return f
}

// compiler has the forms that are being compiled. When they are complete, they are stored in the variable forms.
type compiler map[reflect.Type]*form

func (c compiler) form(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	if f, ok := c[t]; ok {
		return f
	}
	f := &form{typ: t}
	c[t] = f // before its content, which may contain the type itself
	// A pointer has the methods of its element type, but it is a pointerKind anyway.
	byValue, byPointer := converts(t), converts(reflect.PointerTo(t))
	if t.Kind() != reflect.Pointer && (byValue || byPointer) {
		f.kind, f.onlyPtr = convertKind, !byValue
		f.unmarshals = t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(unmarshalerType)
		f.surely, f.isScalar = scalarTypes[t]
		return f
	}
	switch t.Kind() {
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return f.none("a map with keys of %s has no JSON value", t.Key())
		}
		f.kind, f.elem = mapKind, c.form(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.kind = bytesKind
			return f
		}
		f.kind, f.elem = listKind, c.form(t.Elem())
	case reflect.Pointer:
		f.kind, f.elem = pointerKind, c.form(t.Elem())
	case reflect.Interface:
		f.kind = interfaceKind
	case reflect.Struct:
		f.kind = structKind
		f.byName = make(map[string]*field, t.NumField())
		c.fields(f, t, nil, nil)
		f.declared = slices.Clone(f.fields)
		// Sorted by name, like the fields in a set.
		slices.SortFunc(f.fields, func(a, b *field) int { return strings.Compare(a.name, b.name) })
	default:
		if f.kind = basic(t.Kind()); f.kind == noKind {
			return f.none("a Go %s has no JSON value", t)
		}
		f.surely = basicForms[f.kind].surely
	}
	return f
}

func (f *form) none(format string, args ...any) *form {
	f.kind, f.err = noKind, fmt.Errorf(format, args...)
	return f
}

// basic returns the kind for a Go kind that is a scalar; otherwise noKind.
func basic(k reflect.Kind) kind {
	switch k {
	case reflect.String:
		return stringKind
	case reflect.Bool:
		return boolKind
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intKind
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintKind
	case reflect.Float32, reflect.Float64:
		return floatKind
	}
	return noKind
}

// basicForms are the forms of fields of basic kinds, whatever methods their types have.
var basicForms = map[kind]*form{
	stringKind: {kind: stringKind, surely: typed.String}, boolKind: {kind: boolKind, surely: typed.Boolean},
	intKind: {kind: intKind, surely: typed.Numeric}, uintKind: {kind: uintKind}, floatKind: {kind: floatKind},
}

// converts reports whether t has MarshalJSON. A [converter] is a json.Marshaler, too.
func converts(t reflect.Type) bool { return t.Implements(marshalerType) }

// fields adds the fields of t to f. outer are the steps from the struct of f to t; inside are the embedded types around
// t.
func (c compiler) fields(f *form, t reflect.Type, outer []step, inside []reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		options := strings.Split(sf.Tag.Get("json"), ",") // options follow the name
		name := options[0]
		if name == "-" {
			continue
		}
		next := &field{name: cmp.Or(name, sf.Name), outer: outer, index: i}
		next.omitEmpty = slices.Contains(options[1:], "omitempty")
		if slices.Contains(options[1:], "omitzero") {
			next.omitZero = zeroTest(sf.Type)
		}
		isEmbedded := sf.Anonymous && name == ""
		inner := sf.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if isEmbedded && inner.Kind() == reflect.Struct && !converts(sf.Type) && !converts(reflect.PointerTo(sf.Type)) {
			if !slices.Contains(inside, inner) { // in a type that embeds itself, the inner fields are shadowed
				deeper := append(outer[:len(outer):len(outer)], step{i, sf.Type.Kind() == reflect.Pointer, next.omitZero})
				c.fields(f, inner, deeper, append(inside[:len(inside):len(inside)], inner))
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		switch k := basic(sf.Type.Kind()); {
		case isEmbedded:
			next.form = (&form{typ: sf.Type}).none("an embedded %s has no JSON value", sf.Type)
		case k != noKind:
			next.form = basicForms[k]
		default:
			next.form = c.form(sf.Type)
		}
		next.head = string(fieldsets.AppendHead(nil, fieldpath.FieldElement(next.name)))
		f.add(next)
	}
}

func (f *form) add(next *field) {
	if before, ok := f.byName[next.name]; ok {
		next.before = before
		f.fields[slices.Index(f.fields, before)] = next
	} else {
		f.fields = append(f.fields, next)
	}
	f.byName[next.name] = next
}

// zeroTest returns the function that the option omitzero calls for a field of type t.
func zeroTest(t reflect.Type) func(reflect.Value) bool {
	switch {
	case t.Implements(zeroerType):
		return func(v reflect.Value) bool { return isNil(v) || addressed(v, false).(zeroer).IsZero() }
	case reflect.PointerTo(t).Implements(zeroerType):
		return func(v reflect.Value) bool { return addressed(v, true).(zeroer).IsZero() }
	}
	return reflect.Value.IsZero
}

// isNil reports whether v is a nil pointer or interface, or an interface that contains a nil pointer. No method can be
// called on such a value.
func isNil(v reflect.Value) bool {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

// addressed returns a value on which v's methods can be called. If v has an address, the result is this address, which
// saves a copy. Otherwise, if only a pointer has the method, the result is the address of a copy. Otherwise, the result
// is v itself.
func addressed(v reflect.Value, onlyPtr bool) any {
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		return v.Interface()
	}
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	if !onlyPtr {
		return v.Interface()
	}
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	return copied.Interface()
}

// in returns the value of the field in a struct, with its form; ok is false if the field is omitted.
func (f *field) in(v reflect.Value) (value reflect.Value, read *form, ok bool) {
fields:
	for ; f != nil; f = f.before {
		value = v
		for _, s := range f.outer {
			value = value.Field(s.index)
			if s.omitZero != nil && s.omitZero(value) || s.pointer && value.IsNil() {
				continue fields
			}
			if s.pointer {
				value = value.Elem()
			}
		}
		value = value.Field(f.index)
		if !(f.omitEmpty && isEmpty(value)) && (f.omitZero == nil || !f.omitZero(value)) {
			return value, f.form, true
		}
	}
	return reflect.Value{}, nil, false
}

// isEmpty reports whether the option omitempty omits v.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Float32, reflect.Float64:
		return v.Float() == 0 // includes negative zero
	}
	return basic(v.Kind()) != noKind && v.IsZero()
}
