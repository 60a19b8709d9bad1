package gostruct

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Added compares a and b, objects of type t. It returns the paths that only b has, except omitted paths, as FieldsV1 in
// canonical form. The function values.CompareAndValidate returns the same paths, in its field Added, for the trees of a
// and b; Added makes no trees. ok is false if something was modified or removed, if b may not be valid, and in rare
// other cases. The caller must then compare trees. a and b are pointers to structs of one Go type. If except has the
// path of a field and no path below it, the field is not read. See [fieldsets.Writer.Omit] for except and filter.
//
// Added is for creates, where most fields of a are omitted.
//
// The spec rules 4.1, 4.2 and 4.3 are implemented twice: here for Go structs, and in package typed (typed/validate.go)
// for trees. One implementation for trees and Go values would cost more than it saves. A walk that reads trees through
// an interface takes 3.7 times as long as a direct walk. A generic function takes 1.8 times as long, because each child
// is a separate value. A create through a tree takes 4.5 times as long. Only the walk of trees handles rare cases.
// FuzzStructs of test/conformance compares both walks.
func Added(t *typed.Type, a, b any, except *fieldpath.Set, filter fieldpath.Filter) (
	fieldsV1 *metav1.FieldsV1, ok bool,
) {
	av, err1 := structOf(a)
	bv, err2 := structOf(b)
	if err1 != nil || err2 != nil || av.Type() != bv.Type() {
		return nil, false
	}
	f := formOf(av.Type())
	if f.kind != structKind || t.Map == nil || t.Map.IsAtomic() {
		return nil, false
	}
	w := writers.Get().(*writer)
	w.left = limits.MaxValues
	w.out.Omit(except, filter)
	defer func() {
		w.out.Reset()
		writers.Put(w)
	}()
	if !w.fields(t.Map, f, av, bv, except, 0) {
		return nil, false
	}
	return w.out.FieldsV1(), true
}

// writer writes the paths of a Go value. Its functions return false if the caller must compare trees.
type writer struct {
	out  fieldsets.Writer
	left int // number of values that may still be visited
}

var writers = sync.Pool{New: func() any { return &writer{} }}

// fields writes the paths that the struct b has and a does not. a may be invalid.
func (w *writer) fields(m *typed.Map, f *form, a, b reflect.Value, except *fieldpath.Set, depth int) bool {
	level, types := w.out.Level(), f.typesIn(m)
	for i, field := range f.fields {
		e := fieldpath.FieldElement(field.name)
		var av reflect.Value
		var below *fieldpath.Set
		inA := false
		if a.IsValid() {
			var isExcept bool
			if isExcept, below = except.At(e); isExcept && below.IsEmpty() {
				continue
			}
			av, _, inA = field.in(a)
		}
		switch bv, bf, inB := field.in(b); {
		case !inA && !inB:
		case types[i] == nil || !inB:
			return false
		case !inA:
			if !w.child(e, field.head, types[i], bf, bv, depth) {
				return false
			}
		default:
			w.out.Enter(e, field.head, false)
			if !w.addedTo(types[i], field.form, av, bv, below, depth+1) {
				return false
			}
			w.out.Leave(false)
		}
	}
	w.out.Close(level)
	return true
}

// addedTo writes the paths that b has and a does not, for a field that both structs have.
func (w *writer) addedTo(t *typed.Type, f *form, a, b reflect.Value, except *fieldpath.Set, depth int) bool {
	fa, x := indirect(f, a)
	fb, y := indirect(f, b)
	isGranular := t.Scalar == 0 && (t.Map == nil) != (t.List == nil) &&
		(t.Map == nil || !t.Map.IsAtomic()) && (t.List == nil || !t.List.IsAtomic())
	switch {
	case fa == fb && fa.kind == structKind && isGranular && t.Map != nil:
		return w.fields(t.Map, fa, x, y, except, depth)
	case fa == fb && equalScalars(fa, x, y):
		return true
	case fa.kind == nullKind && isGranular && (fb.kind == listKind || fb.kind == mapKind) && y.Len() > 0:
		return w.all(t, fb, y, depth)
	}
	return false
}

// fieldTypes are the types of the fields of a form in a map: types[i] is the type of fields[i].
type fieldTypes struct {
	m     *typed.Map
	types []*typed.Type
}

// typesIn returns the type of each of f.fields in m; nil if m does not allow the field. It caches the last result,
// because a Go type nearly always has the same topology.
func (f *form) typesIn(m *typed.Map) []*typed.Type {
	if last := f.lastTypes.Load(); last != nil && last.m == m {
		return last.types
	}
	types := make([]*typed.Type, len(f.fields))
	for i, field := range f.fields {
		types[i], _ = m.Child(field.name)
	}
	f.lastTypes.Store(&fieldTypes{m, types})
	return types
}

// isWithin counts a value, and reports whether it is within the limits.
func (w *writer) isWithin(depth int) bool {
	w.left--
	return w.left >= 0 && depth <= limits.MaxDepth && w.out.Len() <= limits.MaxBytes/2
}

// all writes all paths below a value, or none if the value is owned as a whole. It returns false if the value may be
// invalid.
func (w *writer) all(t *typed.Type, f *form, v reflect.Value, depth int) (ok bool) {
	if !w.isWithin(depth) {
		return false
	}
	start, isWhole := w.out.Len(), false
	switch f, v = indirect(f, v); f.kind {
	case nullKind:
		return true
	case structKind:
		isWhole = t.Map != nil && t.Map.IsAtomic()
		ok = t.Map != nil && w.fields(t.Map, f, reflect.Value{}, v, nil, depth)
	case mapKind:
		isWhole = t.Map != nil && t.Map.IsAtomic()
		ok = t.Map != nil && w.entries(t.Map, f, v, depth)
	case listKind:
		ok = t.List != nil && v.Len() <= limits.MaxItems && w.items(t.List, f, v, depth)
	default:
		if f.surely != 0 {
			return f.fits(t)
		}
		plain, err := f.scalar(v)
		_, isMap := plain.(map[string]any)
		_, isList := plain.([]any)
		return err == nil && !isMap && !isList && t.Validate(plain, typed.Rules{}) == nil
	}
	if isWhole {
		w.out.Truncate(start)
	}
	return ok
}

// fits reports whether t certainly accepts the scalars of f.
func (f *form) fits(t *typed.Type) bool { return t.Scalar == f.surely || t.Scalar == typed.Untyped }

// child writes the child e of a value.
func (w *writer) child(e fieldpath.Element, head string, t *typed.Type, f *form, v reflect.Value, depth int) bool {
	if f.surely != 0 && f.fits(t) { // most children are such scalars
		w.out.Add(e, head)
		return w.isWithin(depth + 1)
	}
	w.out.Enter(e, head, true)
	ok := w.all(t, f, v, depth+1)
	w.out.Leave(true)
	return ok
}

func (w *writer) entries(m *typed.Map, f *form, v reflect.Value, depth int) bool {
	level := w.out.Level()
	key, value := reflect.New(f.typ.Key()).Elem(), reflect.New(f.typ.Elem()).Elem()
	for it := v.MapRange(); it.Next(); {
		key.SetIterKey(it)
		value.SetIterValue(it)
		name := key.String()
		t, _ := m.Child(name)
		if t == nil || len(name) > limits.MaxElement || !w.child(fieldpath.FieldElement(name), "", t, f.elem, value, depth) {
			return false
		}
	}
	w.out.Sort(level)
	return true
}

func (w *writer) items(l *typed.List, f *form, v reflect.Value, depth int) bool {
	start, level := w.out.Len(), w.out.Level()
	for i := range v.Len() {
		item := v.Index(i)
		if l.IsAtomic() {
			if !w.all(l.Elem(), f.elem, item, depth+1) {
				return false
			}
			w.out.Truncate(start)
		} else if e, ok := elementOf(l, f.elem, item); !ok || !w.child(e, "", l.Elem(), f.elem, item, depth) {
			return false
		}
	}
	return w.out.Sort(level) == nil
}

// elementOf returns the element of a list item, as typed/items.go:List.element does for trees. ok is false in rare
// cases, for example if a key field is not a string, integer or boolean. Only [typed.List] knows which fields are keys,
// and their defaults.
func elementOf(l *typed.List, f *form, item reflect.Value) (e fieldpath.Element, ok bool) {
	f, v := indirect(f, item)
	if l.IsSet() {
		text, ok := keyOf(f, v)
		return fieldpath.ValueElement(text), ok
	}
	if f.kind != structKind {
		return e, false
	}
	var space [4]fieldpath.KeyField
	fields := space[:0]
	for name := range l.Keys() {
		field := f.byName[name]
		if field == nil {
			return e, false
		}
		key, ok := any(nil), false
		if fv, ff, isIn := field.in(v); isIn {
			key, ok = keyOf(indirect(ff, fv))
		} else {
			key = l.KeyDefault(name)
			ok = key != nil
		}
		if !ok {
			return e, false
		}
		fields = append(fields, fieldpath.KeyField{Name: name, Value: key})
	}
	return fieldpath.KeyElement(fields...), true
}

// maxKey is the maximum length of a text in a key, in bytes. Longer texts may exceed the limits of an element.
const maxKey = 1024

func keyOf(f *form, v reflect.Value) (any, bool) {
	switch f.kind {
	case stringKind:
		return v.String(), v.Len() <= maxKey
	case intKind:
		return v.Int(), true
	case boolKind:
		return v.Bool(), true
	}
	return nil, false
}
