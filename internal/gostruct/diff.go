package gostruct

import (
	"maps"
	"reflect"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
)

// Diff returns two objects of type t as trees without the parts that are equal in both, so that a comparison of the
// trees has the same result as a comparison of the objects. Both are nil if nothing differs. except is the path of a
// field that is omitted and not read. For example:
//
//	a  {spec: {image: x, ports: [{port: 80}]}}               →  {spec: {image: x}}
//	b  {spec: {image: y, ports: [{port: 80}], args: [q]}}    →  {spec: {image: y, args: [q]}}
//
// Equal entries of maps and equal fields of structs are omitted one by one. If two keyed lists have the same keys in
// the same order, equal fields of their items are omitted, too, but key fields stay. Any other list is omitted only as
// a whole. Values that differ in Go and may be equal in JSON, such as two quantities, are in both trees. Omitted parts
// are not validated, because they did not change. Diff costs one comparison per field, and a tree of the parts that
// differ. If a value that differs has no JSON, the error is an error of [Tree].
func Diff(t *typed.Type, a, b any, except ...string) (ta, tb map[string]any, err error) {
	av, err1 := structOf(a)
	bv, err2 := structOf(b)
	if err1 == nil && err2 == nil && av.Type() == bv.Type() {
		if f := formOf(av.Type()); f.kind == structKind {
			d, err := diffStructs(t, f, av, bv, except, 0)
			return d.a, d.b, err
		}
	}
	if ta, err = Tree(a, except...); err == nil {
		tb, err = Tree(b, except...)
	}
	return ta, tb, err
}

// sides are the trees of two maps without their equal parts; nil if nothing differs so far.
type sides struct{ a, b map[string]any }

// put sets the entry called name on both sides.
func (s *sides) put(name string, a, b any) {
	if s.a == nil {
		s.a, s.b = map[string]any{}, map[string]any{}
	}
	s.a[name], s.b[name] = a, b
}

// add adds the entry called name to the sides that have it.
func (s *sides) add(name string, a, b side, except []string, depth int) (err error) {
	if s.a == nil {
		s.a, s.b = map[string]any{}, map[string]any{}
	}
	if a.v.IsValid() {
		s.a[name], err = tree(a.form, a.v, except, depth)
	}
	if b.v.IsValid() && err == nil {
		s.b[name], err = tree(b.form, b.v, except, depth)
	}
	return err
}

// side is a value on one side; v is invalid if there is none.
type side struct {
	form *form
	v    reflect.Value
}

// entry compares the entries called name of two maps of type in, which is nil if unknown, and adds what differs.
func (s *sides) entry(in *typed.Type, name string, a, b side, except []string, depth int) error {
	if !a.v.IsValid() || !b.v.IsValid() {
		return s.add(name, a, b, except, depth)
	}
	if depth > limits.MaxDepth {
		return errTooDeep
	}
	fa, x := indirect(a.form, a.v)
	fb, y := indirect(b.form, b.v)
	if fa != fb {
		return s.add(name, side{fa, x}, side{fb, y}, except, depth)
	}
	switch fa.kind {
	case structKind, mapKind:
		var inside sides
		var err error
		if t := entryType(in, name); fa.kind == structKind {
			inside, err = diffStructs(t, fa, x, y, except, depth)
		} else {
			inside, err = diffMaps(t, fa, x, y, depth)
		}
		if err == nil && inside.a != nil {
			s.put(name, inside.a, inside.b)
		}
		return err
	case listKind:
		if equalLists(fa, x, y, depth) {
			return nil
		}
		if before, after, ok := diffItems(entryType(in, name), fa, x, y, depth); ok {
			s.put(name, before, after)
			return nil
		}
	default:
		if equalScalars(fa, x, y) {
			return nil
		}
	}
	return s.add(name, side{fa, x}, side{fb, y}, except, depth)
}

func diffStructs(t *typed.Type, f *form, a, b reflect.Value, except []string, depth int) (out sides, err error) {
	for _, field := range f.fields {
		av, fa, _ := field.in(a)
		bv, fb, _ := field.in(b)
		rest, isExcept := below(except, field.name)
		if isExcept || !av.IsValid() && !bv.IsValid() {
			continue
		}
		if err := out.entry(t, field.name, side{fa, av}, side{fb, bv}, rest, depth+1); err != nil {
			return out, atField(field.name, err)
		}
	}
	return out, nil
}

// entryType returns the type of an entry of a value of type t; nil if it is unknown.
func entryType(t *typed.Type, name string) *typed.Type {
	if t == nil || t.Map == nil {
		return nil
	}
	child, _ := t.Map.Child(name)
	return child
}

func diffMaps(t *typed.Type, f *form, a, b reflect.Value, depth int) (out sides, err error) {
	if a.UnsafePointer() == b.UnsafePointer() {
		return out, nil
	}
	var failed entryError
	for it := a.MapRange(); it.Next(); {
		name := it.Key().String()
		both := [2]side{{f.elem, it.Value()}, {f.elem, b.MapIndex(it.Key())}}
		if failed.add(name, out.entry(t, name, both[0], both[1], nil, depth+1)) {
			return out, failed.err
		}
	}
	for it := b.MapRange(); it.Next(); {
		if name := it.Key().String(); !a.MapIndex(it.Key()).IsValid() {
			if failed.add(name, out.entry(nil, name, side{}, side{f.elem, it.Value()}, nil, depth+1)) {
				break
			}
		}
	}
	return out, failed.err
}

// diffItems returns the items of two keyed lists with only their key fields and the fields that differ. ok is false for
// other lists, and for items that are not structs with equal keys in the same order.
func diffItems(t *typed.Type, f *form, a, b reflect.Value, depth int) (before, after []any, ok bool) {
	if t == nil || t.List == nil || t.List.IsAtomic() || t.List.IsSet() || a.Len() != b.Len() {
		return nil, nil, false
	}
	before, after = make([]any, a.Len()), make([]any, a.Len())
	for i := range before {
		fa, x := indirect(f.elem, a.Index(i))
		fb, y := indirect(f.elem, b.Index(i))
		if fa != fb || fa.kind != structKind || depth > limits.MaxDepth {
			return nil, nil, false
		}
		key := map[string]any{}
		for name := range t.List.Keys() {
			field := fa.byName[name]
			if field == nil {
				return nil, nil, false
			}
			kv, kf, inA := field.in(x)
			ov, fieldValue, inB := field.in(y)
			if inA != inB {
				return nil, nil, false
			}
			if !inA {
				continue
			}
			kf, kv = indirect(kf, kv)
			fieldValue, ov = indirect(fieldValue, ov)
			value, err := kf.scalar(kv)
			if err != nil || kf != fieldValue || !equalScalars(kf, kv, ov) {
				return nil, nil, false
			}
			key[name] = value
		}
		inside, err := diffStructs(t.List.Elem(), fa, x, y, nil, depth+1)
		if err != nil {
			return nil, nil, false
		}
		before[i], after[i] = key, key
		if inside.a != nil {
			maps.Copy(inside.a, key)
			maps.Copy(inside.b, key)
			before[i], after[i] = inside.a, inside.b
		}
	}
	return before, after, true
}

// equalLists reports whether two lists of one Go type have equal items. It may be false even if their trees are equal.
func equalLists(f *form, a, b reflect.Value, depth int) bool {
	if a.Len() != b.Len() || a.UnsafePointer() == b.UnsafePointer() {
		return a.Len() == b.Len()
	}
	var items sides
	for i := range a.Len() {
		err := items.entry(nil, "", side{f.elem, a.Index(i)}, side{f.elem, b.Index(i)}, nil, depth+1)
		if err != nil || items.a != nil {
			return false
		}
	}
	return true
}

// equalScalars reports whether two dereferenced values of a form are certainly equal.
func equalScalars(f *form, a, b reflect.Value) bool {
	switch f.kind {
	case nullKind:
		return true
	case stringKind:
		return a.String() == b.String()
	case boolKind:
		return a.Bool() == b.Bool()
	case intKind:
		return a.Int() == b.Int()
	case convertKind:
		return f.isScalar && a.Type() == b.Type() && a.Equal(b)
	}
	return false
}
