package typed

import (
	"math"
	"slices"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Comparison describes how one value differs from another value of the same type. A path is in only one of the sets,
// with one exception: an item that is duplicated on one side and occurs once on the other is both removed and added. If
// the shape of a field changed, the paths below its old value are removed, and the paths below its new value are added.
// If the old or the new value is a scalar or atomic, the field itself is modified, too.
//
// For example, with ports keyed by port:
//
//	old        image: a   ports: [{port: 80, name: x}, {port: 90}]
//	updated    image: b   ports: [{port: 90}, {port: 91}]
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
	// Inexact means that the two values may differ in a way that the sets don't show: in the order of items, in items
	// that no path can select (spec rules 3.4 and 3.5), or in values that are equal only under the semantics.
	Inexact bool
}

// IsUnchanged reports whether there is no difference.
func (c Comparison) IsUnchanged() bool {
	return c.Added.IsEmpty() && c.Modified.IsEmpty() && c.Removed.IsEmpty()
}

// AddedOrModified returns the union of c.Added and c.Modified.
func (c Comparison) AddedOrModified() *fieldpath.Set { return c.Added.Union(c.Modified) }

// Map returns c with f applied to each of its sets.
func (c Comparison) Map(f func(*fieldpath.Set) *fieldpath.Set) Comparison {
	return Comparison{Added: f(c.Added), Modified: f(c.Modified), Removed: f(c.Removed), Inexact: c.Inexact}
}

// Compare returns how updated differs from old (spec rule 5.3). Both must be valid, but may have duplicates. It costs
// O(size) of both values; it skips parts that are the same value in memory. It ignores the order of items; see
// [Type.Reordered].
func (t *Type) Compare(old, updated any) Comparison {
	return (*Semantics)(nil).Compare(t, old, updated)
}

// Compare is [Type.Compare] for values of type t with the equality of s.
func (s *Semantics) Compare(t *Type, old, updated any) Comparison {
	c := comparer{s: s, left: math.MaxInt}
	return c.run(t, old, updated)
}

// compareAndValidate implements values.CompareAndValidate.
func (s *Semantics) compareAndValidate(t *Type, old, updated any, except ...string) (c Comparison, ok bool) {
	x := comparer{s: s, left: limits.MaxValues, check: true, except: except}
	c = x.run(t, old, updated)
	return c, !x.invalid && x.left >= 0
}

// comparer is one comparison of two values of one type.
type comparer struct {
	s       *Semantics
	left    int      // values that may still be visited
	check   bool     // validate the parts that only the new value has
	invalid bool     // such a part is invalid
	inexact bool     // see [Comparison.Inexact]
	except  []string // path from the current place to the part that is not compared
}

func (c *comparer) run(t *Type, old, updated any) Comparison {
	d := c.compare(t, old, updated, 0)
	return Comparison{Added: d[added].Below, Modified: d[modified].Below, Removed: d[removed].Below,
		Inexact: c.inexact || c.s != nil}
}

// oneSide returns the paths of a value that only one side has, and validates it if check is true.
func (c *comparer) oneSide(t *Type, v any, depth int, check bool) *fieldpath.Set {
	if _, ok := v.(string); ok && (t.Scalar == String || t.Scalar == Untyped) {
		return nil // most values are valid strings
	}
	w := newValidator(stored)
	defer w.release()
	w.setOnly, w.everyPath, w.semantics, w.depth = !check, true, c.s, depth
	w.value(t, v)
	c.invalid = c.invalid || check && w.invalid || w.ended
	c.left -= w.values
	return w.fields.Set()
}

// validateNew does nothing if c.check is false. If c.check is true, it validates updated, a part of the new value that
// replaces a part of the old value, and sets c.check to false, so that the children of updated are not validated again.
// It returns the old c.check for the caller to restore.
func (c *comparer) validateNew(t *Type, updated any, depth int) (check bool) {
	if check = c.check; check {
		w := newValidator(stored)
		defer w.release()
		w.depth = depth
		w.value(t, updated)
		c.invalid = c.invalid || w.invalid
		c.left -= w.values
		c.check = false
	}
	return check
}

// The sets of a [Comparison].
const (
	added = iota
	modified
	removed
	setsOfComparison
)

// difference is how two values differ at one place: for each set of a [Comparison], the entry at that place.
type difference [setsOfComparison]fieldpath.Entry

func (d *difference) unite(o difference) {
	for i := range d {
		d[i].Member = d[i].Member || o[i].Member
		d[i].Below = d[i].Below.Union(o[i].Below)
	}
}

// differences collects the differences of the children of a container.
type differences [setsOfComparison]fieldsets.Builder

func (d *differences) add(e fieldpath.Element, child difference) {
	for i := range d {
		d[i].Add(e, child[i].Member, child[i].Below)
	}
}

func (d *differences) result() (out difference) {
	for i := range d {
		out[i].Below = d[i].Set()
	}
	return out
}

// compare returns the difference at one place at the given depth. Either value may be missing.
func (c *comparer) compare(t *Type, old, updated any, depth int) (d difference) {
	if same(old, updated) {
		return d
	}
	if c.left--; c.left < 0 {
		return d
	}
	switch {
	case isMissing(updated):
		d[removed] = fieldpath.Entry{Member: true, Below: c.oneSide(t, old, depth, false)}
		return d
	case isMissing(old):
		d[added] = fieldpath.Entry{Member: true, Below: c.oneSide(t, updated, depth, c.check)}
		return d
	}
	before, after := t.shapeOf(old), t.shapeOf(updated)
	// A null, and a value of a shape that its type does not allow, are compared as empty containers.
	if shape := after.first(); before == after && (shape != mapShape && shape != listShape || shape == ownShape(updated)) {
		return c.compareAs(t, after, old, updated, depth)
	}
	check := c.validateNew(t, updated, depth)
	d = c.compareAs(t, after, old, updated, depth)
	if before != after {
		d.unite(c.compareAs(t, before, old, updated, depth))
	}
	c.check = check
	return d
}

// compareAs compares two values as values of the first shape in shapes.
func (c *comparer) compareAs(t *Type, shapes shape, old, updated any, depth int) difference {
	if depth > limits.MaxDepth {
		c.invalid = true
		return difference{modified: fieldpath.Entry{Member: true}}
	}
	shape := shapes.first()
	switch {
	case t.isLeafShape(shape), !hasContent(old, shape) && !hasContent(updated, shape):
		return c.compareLeaf(t, old, updated, depth)
	case !hasContent(old, shape):
		c.inexact = true
		return difference{added: fieldpath.Entry{Below: c.oneSide(t, updated, depth, c.check)}}
	case shape == mapShape:
		return c.compareMaps(t.Map, asMap(old), asMap(updated), depth)
	}
	// Most pairs of lists have the same items in the same order. compareInOrder compares them without making elements,
	// and finds the same differences as compareByElements, which compares all other pairs.
	d, ok := c.compareInOrder(t.List, asList(old), asList(updated), depth)
	if !ok {
		d = c.compareByElements(t, asList(old), asList(updated), depth)
	}
	return d
}

// compareLeaf compares two values without visiting their content.
func (c *comparer) compareLeaf(t *Type, old, updated any, depth int) (d difference) {
	if !c.s.Equal(t, old, updated) {
		check := c.validateNew(t, updated, depth)
		d[modified].Member = true
		c.check = check
	}
	return d
}

func (c *comparer) compareMaps(m *Map, old, updated map[string]any, depth int) difference {
	var d differences
	both := 0
	for name, l := range old {
		r, ok := updated[name]
		if ok {
			both++
		} else {
			r = missing
		}
		c.compareEntry(&d, m, name, l, r, depth)
	}
	if both < len(updated) {
		for name, r := range updated {
			if _, ok := old[name]; !ok {
				c.compareEntry(&d, m, name, missing, r, depth)
			}
		}
	}
	return d.result()
}

// compareEntry compares an entry that at least one of two maps has.
func (c *comparer) compareEntry(d *differences, m *Map, name string, l, r any, depth int) {
	if len(c.except) > 0 {
		outer := c.except
		c.except = nil
		if name == outer[0] {
			if c.except = outer[1:]; len(c.except) == 0 {
				c.except = outer
				return
			}
		}
		defer func() { c.except = outer }()
	}
	if same(l, r) || c.s.bothAbsent(m, name, l, r, depth) {
		return
	}
	c.invalid = c.invalid || c.check && isMissing(l) && len(name) > limits.MaxElement
	if child := c.compare(m.typeOf(name), l, r, depth+1); child != (difference{}) {
		d.add(fieldpath.FieldElement(name), child)
	}
}

// maxDiffering is the maximum number of unequal items that [comparer.compareInOrder] compares and checks for
// duplicates.
const maxDiffering = 8

// maxOrdered bounds the nesting of lists that are compared in order. Each level compares differing items again, so a
// value that consists only of nested lists would cost its depth times its size.
const maxOrdered = 64

// compareInOrder compares two lists whose items have the same elements in the same order, and whose items are equal
// except for at most maxDiffering. ok is false for other lists, and if one of the unequal items may be duplicated.
func (c *comparer) compareInOrder(l *List, old, updated []any, depth int) (d difference, ok bool) {
	if len(old) != len(updated) || depth > maxOrdered {
		return d, false
	}
	var differing [maxDiffering]int
	n := 0
	for i := range old {
		if same(old[i], updated[i]) || equal(old[i], updated[i], depth+1, &c.left) {
			continue
		}
		if n == maxDiffering || !l.sameItem(old[i], updated[i]) {
			return d, false
		}
		differing[n] = i
		n++
	}
	var out differences
	for _, i := range differing[:n] {
		e, err := l.element(updated[i])
		if err != nil {
			return d, false
		}
		for j := range updated { // an item that is duplicated in one list is duplicated in the other
			if j != i && l.sameItem(updated[j], updated[i]) {
				return d, false
			}
		}
		out.add(e, c.compare(l.elem, old[i], updated[i], depth+1))
	}
	return out.result(), true
}

// compareByElements compares two lists by the elements of their items. If both lists have duplicates of an item, these
// are compared as one leaf. If only updated has duplicates of an item, the duplicates are added; if only old has
// duplicates, they are removed (spec rule 5.4). In these two cases, if the other list has the item once, this one item
// is compared with a missing item.
func (c *comparer) compareByElements(t *Type, old, updated []any, depth int) difference {
	c.inexact = true
	var d differences
	l := t.List
	before, after := l.indexOf(old), l.indexOf(updated)
	check := c.check
	if len(after.first) < len(updated) { // updated has items that are not compared one by one
		c.validateNew(t, updated, depth)
	}
	for i, e := range before.elems {
		if before.isFirst(i) {
			d.add(e, c.compareItem(l, e, &before, &after, depth))
		}
	}
	for i, e := range after.elems {
		if after.isFirst(i) && !before.has(e) {
			d.add(e, c.compareItem(l, e, &before, &after, depth))
		}
	}
	c.check = check
	return d.result()
}

// compareItem compares the items of both lists that have the element e.
func (c *comparer) compareItem(l *List, e fieldpath.Element, before, after *index, depth int) (d difference) {
	nOld, nNow := before.times(e), after.times(e)
	if nOld > 1 && nNow > 1 {
		d[modified].Member = !equalDuplicates(e, before, after)
		return d
	}
	if nOld == 1 || nNow == 1 {
		d = c.compare(l.elem, before.only(e), after.only(e), depth+1)
	}
	d[removed].Member = d[removed].Member || nOld > 1
	d[added].Member = d[added].Member || nNow > 1
	return d
}

// equalDuplicates reports whether the duplicates of element e are equal, in the same order.
func equalDuplicates(e fieldpath.Element, before, after *index) bool {
	return slices.EqualFunc(before.many[e.Text()], after.many[e.Text()], func(i, j int) bool {
		return Equal(before.list[i], after.list[j])
	})
}
