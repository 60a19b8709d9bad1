package gostruct

import (
	"reflect"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// Diff returns two objects as trees without what is equal in both, so that the trees compare as the objects do; both
// are nil if nothing differs. except is the path of a field that is left out and not read. For example:
//
//	a  {spec: {image: x, ports: [{port: 80}]}}               →  {spec: {image: x}}
//	b  {spec: {image: y, ports: [{port: 80}], args: [q]}}    →  {spec: {image: y, args: [q]}}
//
// Entries of maps and fields of structs are left out one by one, lists only as a whole, since their items are paired by
// their keys. Values that differ in Go and may be equal in JSON, such as two quantities, are in both trees. It costs
// one look at each field, and a tree of what differs. The error is that of [Tree], for a value that differs.
func Diff(a, b any, except ...string) (ta, tb map[string]any, err error) {
	av, err := structOf(a)
	if err != nil {
		return nil, nil, err
	}
	bv, err := structOf(b)
	if err != nil {
		return nil, nil, err
	}
	f := formOf(av.Type())
	if av.Type() != bv.Type() || f.kind != structKind {
		if ta, err = Tree(a, except...); err == nil {
			tb, err = Tree(b, except...)
		}
		return ta, tb, err
	}
	d, err := diffStructs(f, av, bv, except, 0)
	return d.a, d.b, err
}

// sides are the trees of two maps without what is equal in both; nil while nothing differs.
type sides struct{ a, b map[string]any }

// add adds the entry called name, of the sides that have it.
func (s *sides) add(name string, a, b side, except []string, depth int) error {
	if s.a == nil {
		s.a, s.b = map[string]any{}, map[string]any{}
	}
	for _, x := range [...]struct {
		side
		to map[string]any
	}{{a, s.a}, {b, s.b}} {
		if !x.v.IsValid() {
			continue
		}
		v, err := tree(x.form, x.v, except, depth)
		if err != nil {
			return err
		}
		x.to[name] = v
	}
	return nil
}

// side is a value on one side; v is invalid if there is none.
type side struct {
	form *form
	v    reflect.Value
}

// entry compares the entries called name of two maps, and adds what differs.
func (s *sides) entry(name string, a, b side, except []string, depth int) error {
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
	var inside sides
	var err error
	switch fa.kind {
	case structKind:
		inside, err = diffStructs(fa, x, y, except, depth)
	case mapKind:
		inside, err = diffMaps(fa, x, y, depth)
	case listKind:
		if equalLists(fa, x, y, depth) {
			return nil
		}
		return s.add(name, side{fa, x}, side{fb, y}, except, depth)
	default:
		if equalScalars(fa, x, y) {
			return nil
		}
		return s.add(name, side{fa, x}, side{fb, y}, except, depth)
	}
	if err == nil && inside.a != nil {
		if s.a == nil {
			s.a, s.b = map[string]any{}, map[string]any{}
		}
		s.a[name], s.b[name] = inside.a, inside.b
	}
	return err
}

func diffStructs(f *form, a, b reflect.Value, except []string, depth int) (out sides, err error) {
	for _, field := range f.fields {
		av, fa, _ := field.in(a)
		bv, fb, _ := field.in(b)
		rest, isExcept := below(except, field.name)
		if isExcept || !av.IsValid() && !bv.IsValid() {
			continue
		}
		if err := out.entry(field.name, side{fa, av}, side{fb, bv}, rest, depth+1); err != nil {
			return out, atField(field.name, err)
		}
	}
	return out, nil
}

func diffMaps(f *form, a, b reflect.Value, depth int) (out sides, err error) {
	if a.UnsafePointer() == b.UnsafePointer() {
		return out, nil
	}
	for it := a.MapRange(); it.Next(); {
		name := it.Key().String()
		if err := out.entry(name, side{f.elem, it.Value()}, side{f.elem, b.MapIndex(it.Key())}, nil, depth+1); err != nil {
			return out, atField(name, err)
		}
	}
	for it := b.MapRange(); it.Next(); {
		if name := it.Key().String(); !a.MapIndex(it.Key()).IsValid() {
			if err := out.entry(name, side{}, side{f.elem, it.Value()}, nil, depth+1); err != nil {
				return out, atField(name, err)
			}
		}
	}
	return out, nil
}

// equalLists reports whether two lists of one Go type have equal items. It may be false although their trees are equal.
func equalLists(f *form, a, b reflect.Value, depth int) bool {
	if a.Len() != b.Len() || a.UnsafePointer() == b.UnsafePointer() {
		return a.Len() == b.Len()
	}
	var items sides
	for i := range a.Len() {
		err := items.entry("", side{f.elem, a.Index(i)}, side{f.elem, b.Index(i)}, nil, depth+1)
		if err != nil || items.a != nil {
			return false
		}
	}
	return true
}

// equalScalars reports whether two dereferenced values of a form are certainly the same.
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
		return f.bitwise && a.Type() == b.Type() && a.Equal(b)
	}
	return false
}
