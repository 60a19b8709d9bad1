package gostruct

import "reflect"

// Pairs calls do for each name at which two maps of one Go type may differ, with the
// values of those that have it. What is equal, and no container, is left out; so is
// what is the same in memory. It is false, and calls nothing, where other is no [Node]
// of the same Go type, or they are lists. What has no JSON value is an error on its side.
func (n Node) Pairs(other any, do func(name string, a, b Value, inA, inB bool)) bool {
	o, ok := other.(Node)
	if !ok || n.form != o.form || n.form == nil {
		return false
	}
	switch n.form.kind {
	case structKind:
		p, q := memoryOf(n.v), memoryOf(o.v)
		for _, field := range n.form.fields {
			if field.isLeftOut(p) && field.isLeftOut(q) || field.isSame(n.v, o.v) {
				continue
			}
			av, af, inA := field.in(n.v)
			bv, bf, inB := field.in(o.v)
			if inA || inB {
				pair(field.name, side{af, av, inA}, side{bf, bv, inB}, do)
			}
		}
	case mapKind:
		if !equalTexts(n.v, o.v) {
			eachEntry(n.form, n.v, o.v, func(name string, a, b side) { pair(name, a, b, do) })
		}
	default:
		return false
	}
	return true
}

// side is an entry on one of two sides.
type side struct {
	form  *form
	v     reflect.Value
	there bool
}

// value returns the value of a side, nil where it is not there.
func (s side) value() Value {
	if !s.there {
		return nil
	}
	return valueOf(s.form, s.v)
}

// isContainer reports whether a side is a map or list, which is not compared here.
func (s side) isContainer() bool {
	f, _ := settle(s.form, s.v)
	return f.kind == structKind || f.kind == mapKind || f.kind == listKind
}

func pair(name string, a, b side, do func(name string, a, b Value, inA, inB bool)) {
	if a.there && b.there {
		if a.form == b.form && sameMemory(a.form, a.v, b.v) {
			return
		}
		if !(a.isContainer() && b.isContainer()) && equal(a.form, a.v, b.form, b.v, 0) {
			return
		}
	}
	do(name, a.value(), b.value(), a.there, b.there)
}

// eachEntry does a thing for each name that at least one of two maps has.
func eachEntry(f *form, a, b reflect.Value, do func(name string, a, b side)) {
	for it := a.MapRange(); it.Next(); {
		key := it.Key()
		other := b.MapIndex(key)
		do(key.String(), side{f.elem, it.Value(), true}, side{f.elem, other, other.IsValid()})
	}
	for it := b.MapRange(); it.Next(); {
		if key := it.Key(); !a.MapIndex(key).IsValid() {
			do(key.String(), side{}, side{f.elem, it.Value(), true})
		}
	}
}
