package gostruct

import (
	"maps"
	"reflect"
)

// share returns the whole trees of two values that stand at one place; same is
// true when they are equal, and then x is y. What is equal in both is made once
// and stands in both trees, so that comparing them need not visit it: of a list
// with one changed item, only that item.
//
// It is one walk, and linear: whether a container is equal comes up from its
// children, and the second container is made when the first child differs.
func share(f *form, a reflect.Value, g *form, b reflect.Value, depth int) (x, y any, same bool, err error) {
	if depth > MaxDepth {
		return nil, nil, false, errTooDeep
	}
	whole := f == g && sameMemory(f, a, b)
	f, a = settle(f, a)
	g, b = settle(g, b)
	if !whole && f == g {
		switch f.kind {
		case listKind:
			return shareLists(f, a, b, depth)
		case mapKind:
			return shareMaps(f, a, b, depth)
		case structKind:
			return shareStructs(f, a, b, depth)
		}
	}
	if x, err = tree(f, a, nil, depth); err != nil {
		return nil, nil, false, err
	}
	if whole || equal(f, a, g, b, depth) {
		return x, x, true, nil
	}
	y, err = tree(g, b, nil, depth)
	return x, y, false, err
}

func shareLists(f *form, a, b reflect.Value, depth int) (any, any, bool, error) {
	x := make([]any, a.Len())
	var y []any // nil while it is x
	if b.Len() != a.Len() {
		y = make([]any, b.Len())
	}
	for i := range max(a.Len(), b.Len()) {
		var v, w any
		var err error
		same := true
		switch {
		case i >= b.Len():
			v, err = tree(f.elem, a.Index(i), nil, depth+1)
		case i >= a.Len():
			w, err = tree(f.elem, b.Index(i), nil, depth+1)
		default:
			v, w, same, err = share(f.elem, a.Index(i), f.elem, b.Index(i), depth+1)
		}
		if err != nil {
			return nil, nil, false, atItem(i, err)
		}
		if !same && y == nil {
			y = make([]any, len(x))
			copy(y, x[:i])
		}
		if i < len(x) {
			x[i] = v
		}
		if i < len(y) {
			y[i] = w
		}
	}
	if y == nil {
		return x, x, true, nil
	}
	return x, y, false, nil
}

// pair is two maps that are being made.
type pair struct {
	x, y  map[string]any // y is nil while it is x
	depth int
}

func (p *pair) result() (any, any, bool, error) {
	if p.y == nil {
		return p.x, p.x, true, nil
	}
	return p.x, p.y, false, nil
}

// entry adds an entry to both maps. At least one side has it.
func (p *pair) entry(name string, a, b side) error {
	var v, w any
	var err error
	same := false
	switch {
	case !b.there:
		v, err = tree(a.form, a.v, nil, p.depth+1)
	case !a.there:
		w, err = tree(b.form, b.v, nil, p.depth+1)
	default:
		v, w, same, err = share(a.form, a.v, b.form, b.v, p.depth+1)
	}
	if err != nil {
		return atField(name, err)
	}
	if !same && p.y == nil {
		p.y = maps.Clone(p.x)
	}
	if a.there {
		p.x[name] = v
	}
	if b.there && p.y != nil {
		p.y[name] = w
	}
	return nil
}

func shareStructs(f *form, a, b reflect.Value, depth int) (any, any, bool, error) {
	p := &pair{x: make(map[string]any, f.count(a)), depth: depth}
	if err := eachField(f, a, b, p.entry); err != nil {
		return nil, nil, false, err
	}
	return p.result()
}

func shareMaps(f *form, a, b reflect.Value, depth int) (any, any, bool, error) {
	p := &pair{x: make(map[string]any, a.Len()), depth: depth}
	if err := eachEntry(f, a, b, p.entry); err != nil {
		return nil, nil, false, err
	}
	return p.result()
}

// side is an entry on one of two sides.
type side struct {
	form  *form
	v     reflect.Value
	there bool
}

// eachField does a thing for each field that at least one of two structs has.
func eachField(f *form, a, b reflect.Value, do func(name string, a, b side) error) error {
	for _, field := range f.fields {
		av, af, inA := field.in(a)
		bv, bf, inB := field.in(b)
		if !inA && !inB {
			continue
		}
		if err := do(field.name, side{af, av, inA}, side{bf, bv, inB}); err != nil {
			return err
		}
	}
	return nil
}

// eachEntry does a thing for each name that at least one of two maps has.
func eachEntry(f *form, a, b reflect.Value, do func(name string, a, b side) error) error {
	for it := a.MapRange(); it.Next(); {
		key := it.Key()
		other := b.MapIndex(key)
		if err := do(key.String(), side{f.elem, it.Value(), true}, side{f.elem, other, other.IsValid()}); err != nil {
			return err
		}
	}
	for it := b.MapRange(); it.Next(); {
		key := it.Key()
		if a.MapIndex(key).IsValid() {
			continue
		}
		if err := do(key.String(), side{}, side{f.elem, it.Value(), true}); err != nil {
			return err
		}
	}
	return nil
}
