package typed

import (
	"math"
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Comparison is how one value differs from another of the same type. A path is in one of the sets only, with two
// exceptions. If the shape of a field changed, the paths that were below it are removed, those that are below it now
// are added, and a scalar or atomic value on either side is modified. An item that is duplicated on one side and
// occurs once on the other is both removed and added.
//
// For example, with ports keyed by port:
//
//	old        image: a   ports: [{port: 80, name: x}, {port: 90}]
//	now        image: b   ports: [{port: 90}, {port: 91}]
//
//	Added      .ports[port=91]  .ports[port=91].port
//	Modified   .image
//	Removed    .ports[port=80]  .ports[port=80].name  .ports[port=80].port
type Comparison struct {
	// Added holds the paths of leaves, items and containers that only the new value has.
	Added *fieldpath.Set
	// Modified holds the paths of leaves that differ.
	Modified *fieldpath.Set
	// Removed holds the paths of leaves, items and containers that only the old value has.
	Removed *fieldpath.Set
}

// Unchanged reports whether there is no difference.
func (c Comparison) Unchanged() bool {
	return c.Added.Empty() && c.Modified.Empty() && c.Removed.Empty()
}

// Changed returns the paths that the new value added or modified.
func (c Comparison) Changed() *fieldpath.Set { return c.Added.Union(c.Modified) }

// Map returns c with f applied to each of its sets.
func (c Comparison) Map(f func(*fieldpath.Set) *fieldpath.Set) Comparison {
	return Comparison{Added: f(c.Added), Modified: f(c.Modified), Removed: f(c.Removed)}
}

// Compare returns how now differs from old (spec rule 5.3). Both must be valid, but may have duplicates, and may be or
// hold a [Container]. It costs
// O(size) of both values; parts that are one value in memory are skipped. The order of items makes no difference; see
// [Type.Reordered].
func (t *Type) Compare(old, now any) Comparison {
	return (*Semantics)(nil).Compare(t, old, now)
}

// Compare is [Type.Compare] for values of type t with the equality of s.
func (s *Semantics) Compare(t *Type, old, now any) Comparison {
	c := comparer{s: s, left: math.MaxInt}
	return c.run(t, old, now)
}

// CompareAndValidate is [Semantics.Compare] for a value that was not validated. ok is false if a part of now that old
// does not have is invalid by the rules for stored objects, which allow unknown fields and duplicates. Parts that are
// equal in old are valid, whatever they are. ok is also false if the values exceed the limits of [Type.Validate]. The
// field at the path except is skipped. A value in a [Container] that has no JSON value is invalid.
func (s *Semantics) CompareAndValidate(t *Type, old, now any, except ...string) (c Comparison, ok bool) {
	return s.CompareGuessed(t, old, now, nil, except...)
}

// CompareGuessed is [Semantics.CompareAndValidate] with a guess of what is added; nil for none.
func (s *Semantics) CompareGuessed(t *Type, old, now any, g *Guess, except ...string) (c Comparison, ok bool) {
	x := comparer{s: s, left: MaxValues, check: true, except: except}
	if s == nil {
		x.guess = g
	}
	c = x.run(t, old, now)
	return c, !x.invalid && x.left >= 0
}

// comparer is one comparison of two values of one type.
type comparer struct {
	s       *Semantics
	left    int  // values that may still be visited
	check   bool // validate the parts that only the new value has
	invalid bool // such a part is invalid

	except []string // the path of the field that is skipped
	met    int      // how many of its names lead to the current place

	stack *fieldpath.Stack // of what only one side has; nil until something is
	guess *Guess           // of what is added at the current place; nil for none
}

func (c *comparer) run(t *Type, old, now any) Comparison {
	d := c.compare(t, old, now, 0)
	if c.stack != nil {
		c.stack.Clear()
		stacks.Put(c.stack)
		c.stack = nil
	}
	return Comparison{Added: d.added.Below, Modified: d.modified.Below, Removed: d.removed.Below}
}

// accept validates a part that only the new value has. Everything below it is then valid, so it clears c.check, and
// returns the old value for the caller to restore.
func (c *comparer) accept(t *Type, now any, depth int) (check bool) {
	if check = c.check; check {
		c.validate(t, now, depth)
		c.check = false
	}
	return check
}

// validate validates a value by the rules for what is stored.
func (c *comparer) validate(t *Type, v any, depth int) {
	if left := isValid(t, v, depth, c.left); left >= 0 {
		c.left = left
		return
	}
	w := validator{rules: Rules{Duplicates: true, Unknown: true}, depth: depth}
	w.value(t, v, nil)
	c.invalid = c.invalid || len(w.errs) > 0
	c.left -= w.values
}

// difference is how one place of two values differs.
type difference struct {
	added, modified, removed fieldpath.Entry
}

func (d *difference) unite(o difference) {
	for _, pair := range [...]struct{ a, b *fieldpath.Entry }{
		{&d.added, &o.added}, {&d.modified, &o.modified}, {&d.removed, &o.removed},
	} {
		pair.a.Member = pair.a.Member || pair.b.Member
		pair.a.Below = pair.a.Below.Union(pair.b.Below)
	}
}

// differences collects the differences of the children of a container.
type differences struct {
	added, modified, removed fieldpath.Builder
}

func (d *differences) add(e fieldpath.Element, child difference) {
	d.added.Add(e, child.added.Member, child.added.Below)
	d.modified.Add(e, child.modified.Member, child.modified.Below)
	d.removed.Add(e, child.removed.Member, child.removed.Below)
}

func (d *differences) result() difference {
	return difference{
		added:    fieldpath.Entry{Below: d.added.Set()},
		modified: fieldpath.Entry{Below: d.modified.Set()},
		removed:  fieldpath.Entry{Below: d.removed.Set()},
	}
}

// none reports whether there is no difference.
func (d *difference) none() bool {
	return !d.added.Member && d.added.Below == nil && !d.modified.Member && d.modified.Below == nil &&
		!d.removed.Member && d.removed.Below == nil
}

// compare returns the difference at one place, at a depth. One of the values may be missing.
func (c *comparer) compare(t *Type, old, now any, depth int) (d difference) {
	if same(old, now) {
		return d
	}
	if c.left--; c.left < 0 {
		return d
	}
	switch {
	case isMissing(now):
		check := c.check
		c.check = false
		d.removed = fieldpath.Entry{Member: true, Below: c.only(t, old, depth)}
		c.check = check
		return d
	case isMissing(old):
		d.added = fieldpath.Entry{Member: true, Below: c.only(t, now, depth)}
		return d
	}
	c.invalid = c.invalid || isError(old) || isError(now)
	before, after := t.shapeOf(old), t.shapeOf(now)
	if before == after && holds(after, now) {
		return c.compareAs(t, after, old, now, depth)
	}
	check := c.accept(t, now, depth)
	d = c.compareAs(t, after, old, now, depth)
	if before != after {
		d.unite(c.compareAs(t, before, old, now, depth))
	}
	c.check = check
	return d
}

// holds reports whether v has the first of the shapes. Any other value counts as an empty container, whose content is
// not visited.
func holds(shapes shape, v any) bool {
	switch shapes.first() {
	case mapShape:
		return isLiveMap(v)
	case listShape:
		_, ok := lenOf(v)
		return ok
	}
	return true
}

// compareAs compares two values as the first of the shapes. Lists take the first of three ways that is possible:
//
//	same items in the same order   compareInOrder: equal items need no element
//	distinct items                 compareHashed: pairs items by a hash of their keys
//	duplicates, odd keys           compareLists: by elements, the definition
func (c *comparer) compareAs(t *Type, shapes shape, old, now any, depth int) difference {
	if depth > MaxDepth {
		c.invalid = true
		return difference{modified: fieldpath.Entry{Member: true}}
	}
	switch shapes.first() {
	case mapShape:
		switch {
		case t.Map.Atomic || isEmptyMap(now) && isEmptyMap(old):
			return c.compareLeaf(t, old, now, depth)
		case !isLiveMap(old):
			return difference{added: fieldpath.Entry{Below: c.onlyEntries(t.Map, now, depth)}}
		}
		return c.compareMaps(t.Map, old, now, depth)
	case listShape:
		nOld, _ := lenOf(old)
		nNow, _ := lenOf(now)
		if t.List.Kind == AtomicList || nOld == 0 && nNow == 0 {
			return c.compareLeaf(t, old, now, depth)
		}
		if nOld == 0 {
			return difference{added: fieldpath.Entry{Below: c.onlyItems(t, now, depth)}}
		}
		l, r := itemsOf(old), itemsOf(now)
		c.guess = nil // it is of lists that only one side has
		if d, ok := c.compareInOrder(t.List, l, r, depth); ok {
			return d
		}
		if d, ok := c.compareHashed(t.List, l, r, depth); ok {
			return d
		}
		check := c.accept(t, now, depth)
		d := c.compareLists(t.List, l, r, depth)
		c.check = check
		return d
	}
	return c.compareLeaf(t, old, now, depth)
}

// compareLeaf compares two values without visiting their content.
func (c *comparer) compareLeaf(t *Type, old, now any, depth int) (d difference) {
	if !c.s.leavesEqual(t, old, now) {
		check := c.accept(t, now, depth)
		d.modified.Member = true
		c.check = check
	}
	return d
}

func (c *comparer) compareMaps(m *Map, old, now any, depth int) difference {
	if isContainer(old) || isContainer(now) {
		return c.compareInPlace(m, old, now, depth)
	}
	var d differences
	c.comparePlain(&d, m, asMap(old), asMap(now), depth)
	return d.result()
}

// compareInPlace compares two maps of which at least one is a [Container].
func (c *comparer) compareInPlace(m *Map, old, now any, depth int) difference {
	var d differences
	if c.guess != nil {
		d.added = fieldpath.NewBuilder(len(c.guess.Below))
	}
	if a, ok := old.(Container); ok && a.Pairs(now, func(name string, l, r any, inOld, inNow bool) {
		if !inOld {
			l = missing
		}
		if !inNow {
			r = missing
		}
		c.compareEntry(&d, m, name, l, r, depth)
	}) {
		return d.result()
	}
	for name, l := range entriesOf(old) {
		r, ok := entryOf(now, name)
		if !ok {
			r = missing
		}
		c.compareEntry(&d, m, name, l, r, depth)
	}
	for name, r := range entriesOf(now) {
		if _, ok := entryOf(old, name); !ok {
			c.compareEntry(&d, m, name, missing, r, depth)
		}
	}
	return d.result()
}

// comparePlain compares two maps that are plain trees.
func (c *comparer) comparePlain(d *differences, m *Map, old, now map[string]any, depth int) {
	both := 0
	for name, l := range old {
		r, ok := now[name]
		if ok {
			both++
		} else {
			r = missing
		}
		c.compareEntry(d, m, name, l, r, depth)
	}
	if both == len(now) {
		return
	}
	for name, r := range now {
		if _, ok := old[name]; !ok {
			c.compareEntry(d, m, name, missing, r, depth)
		}
	}
}

// maxTried is how deep Containers are asked whether they are equal as a whole, which is
// faster than to walk them, but walks those that are not once more.
const maxTried = 8

// compareEntry compares an entry of two maps, of which at least one has it.
func (c *comparer) compareEntry(d *differences, m *Map, name string, l, r any, depth int) {
	switch {
	case isMissing(r):
		if c.s.asAbsent(m, name, l, depth) {
			return
		}
	case isMissing(l):
		if c.s.asAbsent(m, name, r, depth) {
			return
		}
	case same(l, r) || c.s.bothAbsent(m, name, l, r, depth):
		return
	}
	excepted := c.enter(name, depth)
	// What leads to what is not looked at is not asked as a whole.
	isOnWay := c.met > depth
	switch {
	case excepted:
	case depth <= maxTried && !isOnWay && isContainer(l) && isContainer(r) && Equal(l, r):
	default:
		outer := c.guess
		c.guess = outer.at(fieldpath.Field(name))
		t := c.guess.typeOf(m, name)
		c.invalid = c.invalid || c.check && isMissing(l) && len(name) > fieldpath.MaxElement
		if !isOnWay && c.isGuessedOver(l, r, depth+1) {
			d.added.Add(fieldpath.Field(name), false, c.guess.Set)
		} else if child := c.compare(t, l, r, depth+1); !child.none() {
			d.add(fieldpath.Field(name), child)
		}
		c.guess = outer
	}
	c.leave(depth)
}

// enter is called before the walk visits an entry of a map. It reports whether that is the field that is skipped.
func (c *comparer) enter(name string, depth int) (excepted bool) {
	if depth != c.met || depth >= len(c.except) || name != c.except[depth] {
		return false
	}
	c.met++
	return c.met == len(c.except)
}

// leave is called after the walk visited an entry.
func (c *comparer) leave(depth int) { c.met = min(c.met, depth) }

// compareLists compares the items of two lists by their elements. A duplicated item is compared as one leaf. If only
// one side has duplicates of an item, it is added or removed as a whole, in favour of the other side (spec rule 5.4).
func (c *comparer) compareLists(l *List, old, now []any, depth int) difference {
	var d differences
	before, after := l.indexOf(old), l.indexOf(now)
	for i, e := range before.elems {
		if before.first[e.Text()] != i {
			continue
		}
		d.add(e, c.compareItem(l, e, old, now, &before, &after, depth))
	}
	for i, e := range after.elems {
		if after.first[e.Text()] == i && !before.has(e) {
			d.add(e, c.compareItem(l, e, old, now, &before, &after, depth))
		}
	}
	return d.result()
}

func (c *comparer) compareItem(l *List, e fieldpath.Element, old, now []any, before, after *index,
	depth int) (d difference) {
	first := func(list []any, x *index) any {
		if i, ok := x.first[e.Text()]; ok {
			return list[x.at[i]]
		}
		return missing
	}
	nOld, nNow := before.times(e), after.times(e)
	switch {
	case nOld <= 1 && nNow <= 1:
		return c.compare(l.Elem, first(old, before), first(now, after), depth+1)
	case nOld > 1 && nNow > 1:
		d.modified.Member = !equalDuplicates(e, old, now, before, after)
	case nOld > 1:
		if nNow == 1 {
			d = c.compare(l.Elem, missing, first(now, after), depth+1)
		}
		d.removed.Member = true
	default:
		if nOld == 1 {
			d = c.compare(l.Elem, first(old, before), missing, depth+1)
		}
		d.added.Member = true
	}
	return d
}

// equalDuplicates reports whether the duplicates of element e are equal, in their order.
func equalDuplicates(e fieldpath.Element, old, now []any, before, after *index) bool {
	return slices.EqualFunc(before.many[e.Text()], after.many[e.Text()], func(i, j int) bool {
		return Equal(old[before.at[i]], now[after.at[j]])
	})
}
