package gostruct

import (
	"math"
	"reflect"
)

// EqualJSON reports whether a value, a [Node] or any other, is the same JSON
// value as another. Numbers are equal when their values are, whatever their
// Go types. No tree is made of a node, but of what marshals itself in it. It is
// false where one of them has no JSON value.
func EqualJSON(v, other Value) bool {
	n, ok := v.(Node)
	o, otherIsNode := other.(Node)
	switch {
	case ok && n.form == nil || otherIsNode && o.form == nil:
		return false
	case ok && otherIsNode:
		return equal(n.form, n.v, o.form, o.v, 0)
	case ok:
		return matches(n.form, n.v, other, 0)
	case otherIsNode:
		return matches(o.form, o.v, v, 0)
	}
	return equalTrees(v, other)
}

// EqualJSON reports whether the node is the same JSON value as another; see
// [EqualJSON].
func (n Node) EqualJSON(other any) bool { return EqualJSON(n, other) }

func matches(f *form, v reflect.Value, want any, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	switch f, v = settle(f, v); f.kind {
	case stringKind:
		text, ok := want.(string)
		return ok && text == v.String()
	case structKind:
		m, ok := want.(map[string]any)
		return ok && matchesStruct(f, v, m, depth)
	case mapKind:
		m, ok := want.(map[string]any)
		return ok && len(m) == v.Len() && matchesMap(f, v, m, depth)
	case listKind:
		list, ok := want.([]any)
		if !ok || len(list) != v.Len() {
			return false
		}
		for i := range list {
			if !matches(f.elem, v.Index(i), list[i], depth+1) {
				return false
			}
		}
		return true
	}
	plain, err := f.scalar(v)
	return err == nil && equalTrees(plain, want)
}

func matchesStruct(f *form, v reflect.Value, want map[string]any, depth int) bool {
	found, p := 0, memoryOf(v)
	for _, field := range f.fields {
		if field.isLeftOut(p) {
			continue
		}
		fv, ff, ok := field.in(v)
		if !ok {
			continue
		}
		entry, ok := want[field.name]
		if !ok || !matches(ff, fv, entry, depth+1) {
			return false
		}
		found++
	}
	return found == len(want)
}

func matchesMap(f *form, v reflect.Value, want map[string]any, depth int) bool {
	value := reflect.New(f.typ.Elem()).Elem()
	for it := v.MapRange(); it.Next(); {
		entry, ok := want[it.Key().String()]
		if !ok {
			return false
		}
		value.SetIterValue(it)
		if !matches(f.elem, value, entry, depth+1) {
			return false
		}
	}
	return true
}

// equalTrees reports whether two plain trees are the same JSON value.
func equalTrees(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name, v := range x {
			if w, ok := y[name]; !ok || !equalTrees(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equalTrees(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return equalNumbers(a, b)
}

func equalNumbers(a, b any) bool {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return x == y
		}
	}
	x, xf, xWhole, ok := number(a)
	if !ok {
		return false
	}
	y, yf, yWhole, ok := number(b)
	if !ok {
		return false
	}
	if xWhole && yWhole {
		return x == y
	}
	return xf == yf
}

// number returns a Go number, which a converter may have made of any type, as an
// integer, if it is one, and as a float.
func number(v any) (i int64, f float64, whole, ok bool) {
	r := reflect.ValueOf(v)
	switch basic(r.Kind()) {
	case intKind:
		return r.Int(), float64(r.Int()), true, true
	case uintKind:
		return int64(r.Uint()), float64(r.Uint()), r.Uint() <= math.MaxInt64, true
	case floatKind:
		return 0, r.Float(), false, true
	}
	return 0, 0, false, false
}
