package typed

import (
	"slices"

	"github.com/tenure-ssa/tenure/fieldpath"
)

// Comparison is how one value differs from another of the same type. A path
// stands in one of the sets only, but for two cases. Of a field whose shape
// changed, what was below it is removed, what is below it now is added, and a
// scalar or atomic value on either side is modified. An item that stands twice on
// one side and once on the other is both removed and added.
type Comparison struct {
	// Added holds the paths of leaves, items and containers that only the new
	// value has.
	Added *fieldpath.Set
	// Modified holds the paths of leaves that both have, with other values.
	Modified *fieldpath.Set
	// Removed holds the paths of leaves, items and containers that only the old
	// value has.
	Removed *fieldpath.Set
}

// Unchanged reports whether there is no difference.
func (c Comparison) Unchanged() bool {
	return c.Added.Empty() && c.Modified.Empty() && c.Removed.Empty()
}

// Changed returns the paths that the new value added or modified.
func (c Comparison) Changed() *fieldpath.Set { return c.Added.Union(c.Modified) }

// Map returns c with f done to each of its sets.
func (c Comparison) Map(f func(*fieldpath.Set) *fieldpath.Set) Comparison {
	return Comparison{Added: f(c.Added), Modified: f(c.Modified), Removed: f(c.Removed)}
}

// Compare returns how now differs from old (spec rule 5.3). Both must have been
// validated; either may have duplicates. Parts that are one value in memory are
// not visited.
func (t *Type) Compare(old, now any) Comparison {
	return (*Semantics)(nil).Compare(t, old, now)
}

// Compare is [Type.Compare] for values of t with the equality of s.
func (s *Semantics) Compare(t *Type, old, now any) Comparison {
	c := s.compare(t, old, now, 0)
	return Comparison{Added: c.added.Below, Modified: c.modified.Below, Removed: c.removed.Below}
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

// differences gathers those of the children of a container.
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

// compare returns the difference of one place, depth deep in what is compared;
// either value may be missing, but not both.
func (s *Semantics) compare(t *Type, old, now any, depth int) difference {
	if same(old, now) {
		return difference{}
	}
	var d difference
	switch {
	case isMissing(now):
		d = s.compareAs(t, t.shapeOf(old), old, now, depth)
		d.removed.Member = true
	case isMissing(old):
		d = s.compareAs(t, t.shapeOf(now), old, now, depth)
		d.added.Member = true
	default:
		before, after := t.shapeOf(old), t.shapeOf(now)
		d = s.compareAs(t, after, old, now, depth)
		if before != after {
			d.unite(s.compareAs(t, before, old, now, depth))
		}
	}
	return d
}

// compareAs compares as values of the first of the shapes.
func (s *Semantics) compareAs(t *Type, shapes shape, old, now any, depth int) difference {
	if depth > MaxDepth {
		return difference{modified: fieldpath.Entry{Member: !isMissing(old) && !isMissing(now)}}
	}
	switch shapes.first() {
	case mapShape:
		l, r := asMap(old), asMap(now)
		if t.Map.Atomic || len(l) == 0 && len(r) == 0 {
			return s.compareLeaf(t, old, now)
		}
		return s.compareMaps(t.Map, l, r, depth)
	case listShape:
		l, r := asList(old), asList(now)
		if t.List.Kind == AtomicList || len(l) == 0 && len(r) == 0 {
			return s.compareLeaf(t, old, now)
		}
		return s.compareLists(t.List, l, r, depth)
	}
	return s.compareLeaf(t, old, now)
}

// compareLeaf compares without going down; that a value is missing is for the
// caller to say.
func (s *Semantics) compareLeaf(t *Type, old, now any) (d difference) {
	if !isMissing(old) && !isMissing(now) && !s.leavesEqual(t, old, now) {
		d.modified.Member = true
	}
	return d
}

func (s *Semantics) compareMaps(m *Map, old, now map[string]any, depth int) difference {
	var d differences
	child := func(name string, l, r any) {
		t, _ := m.field(name)
		if t == nil {
			t = deducedType
		}
		d.add(fieldpath.Field(name), s.compare(t, l, r, depth+1))
	}
	for name, l := range old {
		r, ok := now[name]
		if ok {
			child(name, l, r)
		} else if !s.asAbsent(m, name, l, depth) {
			child(name, l, missing)
		}
	}
	for name, r := range now {
		if _, ok := old[name]; !ok && !s.asAbsent(m, name, r, depth) {
			child(name, missing, r)
		}
	}
	return d.result()
}

// compareLists compares the items of two lists by their elements. Items that stand
// more than once on a side have no value of their own there: they are compared
// as one leaf, and where only one side has duplicates, the item as a whole is
// added or removed in favour of the other (spec rule 5.4).
func (s *Semantics) compareLists(l *List, old, now []any, depth int) difference {
	if d, ok := s.compareInOrder(l, old, now, depth); ok {
		return d
	}
	var d differences
	before, after := l.indexOf(old), l.indexOf(now)
	for i, e := range before.elems {
		if before.first[e.Text()] != i {
			continue
		}
		d.add(e, s.compareItem(l, e, old, now, &before, &after, depth))
	}
	for i, e := range after.elems {
		if after.first[e.Text()] == i && !before.has(e) {
			d.add(e, s.compareItem(l, e, old, now, &before, &after, depth))
		}
	}
	return d.result()
}

func (s *Semantics) compareItem(l *List, e fieldpath.Element, old, now []any, before, after *index, depth int) (d difference) {
	first := func(list []any, x *index) any {
		if i, ok := x.first[e.Text()]; ok {
			return list[x.at[i]]
		}
		return missing
	}
	nOld, nNow := before.times(e), after.times(e)
	switch {
	case nOld <= 1 && nNow <= 1:
		return s.compare(l.Elem, first(old, before), first(now, after), depth+1)
	case nOld > 1 && nNow > 1:
		d.modified.Member = !equalDuplicates(e, old, now, before, after)
	case nOld > 1:
		if nNow == 1 {
			d = s.compare(l.Elem, missing, first(now, after), depth+1)
		}
		d.removed.Member = true
	default:
		if nOld == 1 {
			d = s.compare(l.Elem, first(old, before), missing, depth+1)
		}
		d.added.Member = true
	}
	return d
}

// equalDuplicates reports whether the items of element e are the same, in order.
func equalDuplicates(e fieldpath.Element, old, now []any, before, after *index) bool {
	return slices.EqualFunc(before.many[e.Text()], after.many[e.Text()], func(i, j int) bool {
		return Equal(old[before.at[i]], now[after.at[j]])
	})
}
