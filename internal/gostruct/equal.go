package gostruct

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
)

// equal reports whether two values are the same JSON value. What is one pointer,
// map or slice in memory is not looked into. It is false where a value turns out
// to have no JSON value, so that the caller, who makes a tree of it next, finds
// out why.
func equal(f *form, a reflect.Value, g *form, b reflect.Value, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	if f == g && sameMemory(f, a, b) {
		return true
	}
	f, a = settle(f, a)
	g, b = settle(g, b)
	if f != g {
		return equalOtherwise(f, a, g, b, depth)
	}
	switch f.kind {
	case nullKind:
		return true
	case stringKind:
		return a.String() == b.String()
	case boolKind:
		return a.Bool() == b.Bool()
	case intKind:
		return a.Int() == b.Int()
	case uintKind:
		return a.Uint() == b.Uint() && a.Uint() <= math.MaxInt64
	case floatKind:
		return a.Float() == b.Float()
	case bytesKind:
		return bytes.Equal(a.Bytes(), b.Bytes())
	case convertKind:
		return equalConverted(f, a, b)
	case structKind:
		return equalStructs(f, a, b, depth)
	case mapKind:
		return equalMaps(f, a, b, depth)
	case listKind:
		return equalLists(f, a, b, depth)
	}
	return false
}

// sameMemory reports whether a and b, of one form, are the same pointer, map or
// slice.
func sameMemory(f *form, a, b reflect.Value) bool {
	switch f.kind {
	case pointerKind, mapKind:
		return a.Pointer() == b.Pointer()
	case listKind, bytesKind:
		return a.Len() == b.Len() && a.Pointer() == b.Pointer()
	}
	return false
}

// equalOtherwise compares settled values of different forms: what different types
// in an interface, or a null and what converts itself to one, come to.
func equalOtherwise(f *form, a reflect.Value, g *form, b reflect.Value, depth int) bool {
	if f.kind == nullKind && g.kind != convertKind || g.kind == nullKind && f.kind != convertKind {
		return false
	}
	x, err := tree(f, a, nil, depth)
	if err != nil {
		return false
	}
	return matches(g, b, x, depth)
}

func equalConverted(f *form, a, b reflect.Value) bool {
	if f.bitwise && a.Equal(b) {
		return true
	}
	if f.marshals {
		// Equal texts are equal values, whatever they say; others may still be.
		x, y := marshal(f, a), marshal(f, b)
		if x == nil || y == nil {
			return false
		}
		if bytes.Equal(x, y) {
			_, isText := plainString(x)
			return isText || json.Valid(x)
		}
	}
	x, err := f.convert(a)
	if err != nil {
		return false
	}
	y, err := f.convert(b)
	return err == nil && equalTrees(x, y)
}

func marshal(f *form, v reflect.Value) []byte {
	m, ok := addressed(v, f.onlyPtr).(json.Marshaler)
	if !ok {
		return nil
	}
	data, err := m.MarshalJSON()
	if err != nil {
		return nil
	}
	return data
}

func equalStructs(f *form, a, b reflect.Value, depth int) bool {
	if p, q := memoryOf(a), memoryOf(b); p != nil && q != nil {
		return equalInMemory(f, p, q, depth)
	}
	for _, field := range f.fields {
		if !equalFields(field, a, b, depth) {
			return false
		}
	}
	return true
}

// equalFields reports whether a field of two structs is equal, or left out in both.
func equalFields(f *field, a, b reflect.Value, depth int) bool {
	if isEqual, known := f.equal(a, b, depth); known {
		return isEqual
	}
	av, af, inA := f.in(a)
	bv, bf, inB := f.in(b)
	return inA == inB && (!inA || equal(af, av, bf, bv, depth+1))
}

// equal reports whether a field of two structs is equal, left out or not, without asking first whether it is left out.
// known is false where that makes a difference, and for rare kinds.
func (f *field) equal(a, b reflect.Value, depth int) (isEqual, known bool) {
	if !f.isPlain {
		return false, false
	}
	v, w := f.at(a), f.at(b)
	switch f.form.kind {
	case stringKind:
		return v.String() == w.String(), true
	case boolKind:
		return v.Bool() == w.Bool(), true
	case intKind:
		return v.Int() == w.Int(), true
	case pointerKind:
		switch p, q := v.Pointer(), w.Pointer(); {
		case p == q:
			return true, true
		case p != 0 && q != 0:
			return equal(f.form.elem, v.Elem(), f.form.elem, w.Elem(), depth+1), true
		}
		return false, f.omitEmpty
	case listKind, mapKind:
		switch n := v.Len(); {
		case n != w.Len():
			return false, true
		case n == 0:
			return f.omitEmpty || v.IsNil() == w.IsNil(), true
		}
		return equal(f.form, v, f.form, w, depth+1), true
	case structKind:
		return equal(f.form, v, f.form, w, depth+1), true
	}
	return false, false
}

// isSame reports whether a field of two structs is the same in Go, and so in JSON, left
// out or not, as most are. It is a look at both, and may be false for what is equal.
func (f *field) isSame(a, b reflect.Value) bool {
	if !f.isPlain {
		return false
	}
	v, w := f.at(a), f.at(b)
	switch f.form.kind {
	case stringKind:
		return v.String() == w.String()
	case boolKind:
		return v.Bool() == w.Bool()
	case intKind:
		return v.Int() == w.Int()
	case pointerKind, mapKind:
		return v.Pointer() == w.Pointer()
	case listKind, bytesKind:
		return v.Pointer() == w.Pointer() && v.Len() == w.Len()
	}
	return false
}

func equalMaps(f *form, a, b reflect.Value, depth int) bool {
	if a.Len() != b.Len() {
		return false
	}
	if a.Type() == textsType {
		return equalTexts(a, b)
	}
	// Each entry is copied to one place in turn, which has an address.
	key, value := reflect.New(f.typ.Key()).Elem(), reflect.New(f.typ.Elem()).Elem()
	for it := a.MapRange(); it.Next(); {
		key.SetIterKey(it)
		other := b.MapIndex(key)
		if !other.IsValid() {
			return false
		}
		value.SetIterValue(it)
		if !equal(f.elem, value, f.elem, other, depth+1) {
			return false
		}
	}
	return true
}

var textsType = reflect.TypeFor[map[string]string]()

// equalTexts reports whether a and b, of one type, are both a map[string]string,
// as labels are, and equal.
func equalTexts(a, b reflect.Value) bool {
	if a.Type() != textsType || a.Len() != b.Len() {
		return false
	}
	y := b.Interface().(map[string]string)
	for name, text := range a.Interface().(map[string]string) {
		if other, ok := y[name]; !ok || other != text {
			return false
		}
	}
	return true
}

func equalLists(f *form, a, b reflect.Value, depth int) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !equal(f.elem, a.Index(i), f.elem, b.Index(i), depth+1) {
			return false
		}
	}
	return true
}
