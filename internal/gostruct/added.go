package gostruct

import (
	"reflect"
	"sync"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Added returns the paths that b has and a does not, of objects of type t: the Added of
// [typed.Semantics.CompareAndValidate] of their trees, without making these. ok is false if something was modified or
// removed, if b may not be valid, and in rare cases: then the caller has to compare trees. Both are pointers to structs
// of one Go type. except is the path of a field that is left out and not read.
//
// It is for objects that are created, where all but a few fields of a are left out.
func Added(t *typed.Type, a, b any, except ...string) (added *fieldpath.Set, ok bool) {
	av, err1 := structOf(a)
	bv, err2 := structOf(b)
	if err1 != nil || err2 != nil || av.Type() != bv.Type() {
		return nil, false
	}
	f := formOf(av.Type())
	if f.kind != structKind || t.Map == nil || t.Map.Atomic {
		return nil, false
	}
	w := writers.Get().(*writer)
	w.left = limits.MaxValues
	defer func() {
		w.set.Reset()
		writers.Put(w)
	}()
	return w.addedFields(t.Map, f, av, bv, except, 0)
}

// writer makes the set of a Go value. Its functions return false if the caller has to compare trees.
type writer struct {
	set  fieldpath.Builder
	left int // values that may still be visited
}

var writers = sync.Pool{New: func() any { return &writer{} }}

// addedFields returns the paths that the struct b has and a does not.
func (w *writer) addedFields(
	m *typed.Map, f *form, a, b reflect.Value, except []string, depth int,
) (*fieldpath.Set, bool) {
	at := w.set.Level()
	for _, field := range f.fields {
		av, _, inA := field.in(a)
		bv, bf, inB := field.in(b)
		if !inA && !inB {
			continue
		}
		rest, isExcept := below(except, field.name)
		if isExcept {
			continue
		}
		t := fieldType(m, field.name)
		if t == nil || !inB {
			return nil, false
		}
		var sub *fieldpath.Set
		ok := true
		if inA {
			sub, ok = w.addedTo(t, field.form, av, bv, rest, depth+1)
		} else {
			sub, ok = w.all(t, bf, bv, depth+1)
		}
		if !ok {
			return nil, false
		}
		w.set.Add(fieldpath.Field(field.name), !inA, sub)
	}
	return w.set.Pop(at), true
}

// addedTo is addedFields for a field that both have.
func (w *writer) addedTo(
	t *typed.Type, f *form, a, b reflect.Value, except []string, depth int,
) (*fieldpath.Set, bool) {
	fa, x := indirect(f, a)
	fb, y := indirect(f, b)
	isGranular := t.Scalar == 0 && (t.Map == nil) != (t.List == nil) &&
		(t.Map == nil || !t.Map.Atomic) && (t.List == nil || !t.List.IsAtomic())
	switch {
	case fa == fb && fa.kind == structKind && isGranular && t.Map != nil:
		return w.addedFields(t.Map, fa, x, y, except, depth)
	case fa == fb && equalScalars(fa, x, y):
		return nil, true
	case fa.kind == nullKind && isGranular && (fb.kind == listKind || fb.kind == mapKind) && y.Len() > 0:
		return w.all(t, fb, y, depth)
	}
	return nil, false
}

// fieldType returns the type of an entry of a map; nil if the map can't have it.
func fieldType(m *typed.Map, name string) *typed.Type {
	if field, ok := m.Fields[name]; ok {
		return field.Type
	}
	return m.Elem
}

// all returns all paths below a value; false if it may be invalid.
func (w *writer) all(t *typed.Type, f *form, v reflect.Value, depth int) (*fieldpath.Set, bool) {
	if w.left--; w.left < 0 || depth > limits.MaxDepth {
		return nil, false
	}
	switch f, v = indirect(f, v); f.kind {
	case nullKind:
		return nil, true
	case stringKind:
		return nil, t.Scalar == typed.String || t.Scalar == typed.Untyped
	case boolKind:
		return nil, t.Scalar == typed.Boolean || t.Scalar == typed.Untyped
	case intKind:
		return nil, t.Scalar == typed.Numeric || t.Scalar == typed.Untyped
	case structKind:
		return w.allFields(t, f, v, depth)
	case mapKind:
		return w.allEntries(t, f, v, depth)
	case listKind:
		return w.allItems(t, f, v, depth)
	}
	plain, err := f.scalar(v)
	if err != nil || t.Validate(plain, typed.Rules{Duplicates: true, Unknown: true}) != nil {
		return nil, false
	}
	_, isMap := plain.(map[string]any)
	_, isList := plain.([]any)
	return nil, !isMap && !isList
}

func (w *writer) allFields(t *typed.Type, f *form, v reflect.Value, depth int) (*fieldpath.Set, bool) {
	if t.Map == nil {
		return nil, false
	}
	at := w.set.Level()
	for _, field := range f.fields {
		fv, ff, ok := field.in(v)
		if !ok {
			continue
		}
		child := fieldType(t.Map, field.name)
		if child == nil {
			return nil, false
		}
		sub, ok := w.all(child, ff, fv, depth+1)
		if !ok {
			return nil, false
		}
		w.set.Add(fieldpath.Field(field.name), true, sub)
	}
	return w.pop(at, t.Map.Atomic), true
}

// pop returns the set of a level; none inside of what is owned as a whole.
func (w *writer) pop(at int, isAtomic bool) *fieldpath.Set {
	if set := w.set.Pop(at); !isAtomic {
		return set
	}
	return nil
}

func (w *writer) allEntries(t *typed.Type, f *form, v reflect.Value, depth int) (*fieldpath.Set, bool) {
	if t.Map == nil {
		return nil, false
	}
	at := w.set.Level()
	for it := v.MapRange(); it.Next(); {
		name := it.Key().String()
		child := fieldType(t.Map, name)
		if child == nil || len(name) > limits.MaxElement {
			return nil, false
		}
		sub, ok := w.all(child, f.elem, it.Value(), depth+1)
		if !ok {
			return nil, false
		}
		w.set.Add(fieldpath.Field(name), true, sub)
	}
	return w.pop(at, t.Map.Atomic), true
}

func (w *writer) allItems(t *typed.Type, f *form, v reflect.Value, depth int) (*fieldpath.Set, bool) {
	l := t.List
	if l == nil || v.Len() > limits.MaxItems {
		return nil, false
	}
	at := w.set.Level()
	for i := range v.Len() {
		item := v.Index(i)
		e, ok := elementOf(l, f.elem, item)
		if !ok {
			return nil, false
		}
		sub, ok := w.all(l.Elem, f.elem, item, depth+1)
		if !ok {
			return nil, false
		}
		if !l.IsAtomic() {
			w.set.Add(e, true, sub)
		}
	}
	set, twice := w.set.PopItems(at)
	return set, twice == nil
}

// elementOf returns the element of an item whose key or value is of a common kind; the zero Element of an atomic list.
func elementOf(l *typed.List, f *form, item reflect.Value) (e fieldpath.Element, ok bool) {
	switch f, v := indirect(f, item); {
	case l.IsAtomic():
		return e, true
	case l.Set:
		text, ok := keyOf(f, v)
		return fieldpath.Value(text), ok
	default:
		if f.kind != structKind {
			return e, false
		}
		var space [4]fieldpath.KeyField
		fields := space[:0]
		for _, name := range l.Keys {
			field := f.byName[name]
			if field == nil {
				return e, false
			}
			fv, ff, ok := field.in(v)
			if !ok {
				if l.Elem.Map == nil || l.Elem.Map.Fields[name].Default == nil {
					return e, false
				}
				fields = append(fields, fieldpath.KeyField{Name: name, Value: l.Elem.Map.Fields[name].Default})
				continue
			}
			key, ok := keyOf(indirect(ff, fv))
			if !ok {
				return e, false
			}
			fields = append(fields, fieldpath.KeyField{Name: name, Value: key})
		}
		return fieldpath.Key(fields...), true
	}
}

// maxKey is the longest text in a key, in bytes; longer ones may exceed the limits of an element.
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
