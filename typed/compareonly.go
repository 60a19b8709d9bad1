package typed

import (
	"sync"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

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

// stacks are used again by one comparison after the other.
var stacks = sync.Pool{New: func() any { return &fieldpath.Stack{} }}

func (c *comparer) level() int {
	if c.stack == nil {
		c.stack = stacks.Get().(*fieldpath.Stack)
	}
	return c.stack.Level()
}

// isGuessed reports whether what only the new side has at the current place is as guessed.
func (c *comparer) isGuessed(v any, depth int) bool {
	if c.guess == nil || !c.check || !c.guess.fits(v, depth) {
		return false
	}
	c.left -= c.guess.size
	return true
}

// isGuessedOver reports whether what the new side has more at the current place is as guessed, and all else is equal.
func (c *comparer) isGuessedOver(old, now any, depth int) bool {
	if c.guess == nil || !c.check || !c.guess.IsOver {
		return false
	}
	v, ok := now.(guessable)
	if !ok || !v.FitsOver(old, c.guess, depth) {
		return false
	}
	c.left -= c.guess.size
	return true
}

func (c *comparer) onlyEntries(m *Map, v any, depth int) *fieldpath.Set {
	if c.isGuessed(v, depth) {
		return c.guess.Set
	}
	at := c.level()
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			c.onlyEntry(m, name, child, depth)
		}
	case Container:
		if !v.IsStruct() {
			for name, child := range v.Entries() {
				c.onlyEntry(m, name, child, depth)
			}
			break
		}
		for name, child, i := v.NextShape(0); i >= 0; name, child, i = v.NextShape(i) {
			c.onlyEntry(m, name, child, depth)
		}
	}
	return c.stack.Set(at)
}

func (c *comparer) onlyEntry(m *Map, name string, v any, depth int) {
	if c.left--; c.left < 0 || c.s.asAbsent(m, name, v, depth) {
		return
	}
	t := m.typeOf(name)
	c.invalid = c.invalid || c.check && len(name) > fieldpath.MaxElement
	if !c.enter(name, depth) {
		outer := c.guess
		c.guess = outer.at(fieldpath.Field(name))
		c.stack.Add(fieldpath.Field(name), true, c.only(t, v, depth+1))
		c.guess = outer
	} else if c.check { // it is not asked how it differs, but has to fit
		c.validate(t, v, depth+1)
	}
	c.leave(depth)
}

func (c *comparer) onlyItems(t *Type, v any, depth int) *fieldpath.Set {
	if c.isGuessed(v, depth) {
		return c.guess.Set
	}
	l, list := t.List, itemsOf(v)
	if c.left -= len(list); c.left < 0 || c.check && len(list) > MaxItems {
		c.invalid = true
		return nil
	}
	at := c.level()
	elems, ok := l.elements(list)
	outer := c.guess
	if ok {
		for i, e := range elems {
			c.guess = outer.at(e)
			c.stack.Add(e, true, c.only(l.Elem, list[i], depth+1))
		}
		c.guess = outer
		return c.stack.Set(at)
	}
	c.guess = nil
	// Some items are in it twice, or can't be told from others.
	check := c.accept(t, v, depth)
	x := l.indexOf(list)
	for i, e := range x.elems {
		if x.times(e) > 1 {
			c.stack.Add(e, true, nil)
		} else {
			c.stack.Add(e, true, c.only(l.Elem, list[x.at[i]], depth+1))
		}
	}
	c.check = check
	return c.stack.Set(at)
}

// elements returns the elements of the items of a list; ok is false unless each has
// one of its own.
func (l *List) elements(list []any) (elems []fieldpath.Element, ok bool) {
	if len(list) > maxDuplicateSearch {
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
		if len(list) <= maxDuplicateSearch {
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
