package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// The functions of this file walk a value that one of two sides alone has: the object
// that is created, an item that is added, a field that is removed. All that is in it
// is added or removed, so that one walk of it makes the set, and validates it on the way.

// only returns the paths below a value that only one side has. c.check says that it
// is the new side, whose value has to fit its type.
func (c *comparer) only(t *Type, v any, depth int) *fieldpath.Set {
	if depth > MaxDepth {
		c.invalid = true
		return nil
	}
	if _, ok := v.(string); ok && (t.Scalar == String || t.Scalar == Untyped) {
		return nil // as most values are
	}
	shapes := t.shapeOf(v)
	switch shapes.first() {
	case mapShape:
		if isLiveMap(v) && !t.Map.Atomic {
			return c.onlyEntries(t.Map, v, depth)
		}
	case scalarShape:
		if kindOf(v) != notJSON {
			c.invalid = c.invalid || c.check && v != nil && (!t.Scalar.accepts(v) || finite(v) != nil)
			return nil
		}
	case listShape:
		if _, ok := lenOf(v); ok && t.List.Kind != AtomicList {
			return c.onlyItems(t, v, depth)
		}
	}
	if isError(v) {
		c.invalid = true
	} else if c.check {
		c.validate(t, v, depth)
	}
	return nil
}

func (c *comparer) onlyEntries(m *Map, v any, depth int) *fieldpath.Set {
	var b fieldpath.Builder
	if plain, ok := v.(map[string]any); ok {
		b = fieldpath.NewBuilder(len(plain))
	}
	for name, child := range entriesOf(v) {
		if c.s.asAbsent(m, name, child, depth) {
			continue
		}
		t, _ := m.field(name)
		if t == nil {
			t = deducedType
		}
		c.left--
		if c.enter(name, depth) {
			// Nobody asks how it differs.
			if c.check {
				c.validate(t, child, depth+1)
			}
			c.leave(depth)
			continue
		}
		c.invalid = c.invalid || c.check && len(name) > fieldpath.MaxElement
		if c.left >= 0 {
			b.Add(fieldpath.Field(name), true, c.only(t, child, depth+1))
		}
		c.leave(depth)
	}
	return b.Set()
}

func (c *comparer) onlyItems(t *Type, v any, depth int) *fieldpath.Set {
	l, list := t.List, itemsOf(v)
	if c.left -= len(list); c.left < 0 || c.check && len(list) > MaxItems {
		c.invalid = true
		return nil
	}
	b := fieldpath.NewBuilder(len(list))
	elems, ok := l.elements(list)
	if ok {
		for i, e := range elems {
			b.Add(e, true, c.only(l.Elem, list[i], depth+1))
		}
		return b.Set()
	}
	// Some items are in it twice, or can't be told from others.
	check := c.accept(t, v, depth)
	x := l.indexOf(list)
	for i, e := range x.elems {
		if x.times(e) > 1 {
			b.Add(e, true, nil)
		} else {
			b.Add(e, true, c.only(l.Elem, list[x.at[i]], depth+1))
		}
	}
	c.check = check
	return b.Set()
}

// elements returns the elements of the items of a list; ok is false unless each has
// one of its own.
func (l *List) elements(list []any) (elems []fieldpath.Element, ok bool) {
	if len(list) > maxTwins {
		f := l.matcher()
		if !f.hashItems(list) {
			return nil, false
		}
	}
	elems = make([]fieldpath.Element, len(list))
	for i, item := range list {
		e, err := l.element(item)
		if err != nil {
			return nil, false
		}
		if len(list) <= maxTwins {
			for _, other := range elems[:i] {
				if other.Equal(e) {
					return nil, false
				}
			}
		}
		elems[i] = e
	}
	return elems, true
}
