package blame

import (
	"cmp"
	"slices"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/internal/items"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// cursor is the part of an entry below a node.
type cursor struct {
	entry int
	below *fieldpath.Set
	// several reports that an item is one of several equal ones. Fields that it lacks may be in another one, so nothing
	// below it is treated as absent.
	several bool
}

// place is what a node inherits from its parents.
type place struct {
	whole []int // the entries that own it through an atomic list or map around it, or through one of duplicate items
	// exempt reports that it never has an owner. below has the paths in it that never have one; if it is exempt and
	// below is nil, nothing in it has one.
	exempt bool
	below  *fieldpath.Set
}

// attribute carries the cursors of all entries down the object at once, and finds who owns each node.
func (r *Report) attribute(root *node, t *typed.Type, cursors []cursor) {
	root.typ, root.cursors = cmp.Or(t, unknown), cursors
	r.visit(root, place{below: managedfields.Unowned()})
}

// visit gives the cursors of n to its children, visits them, and sets the kind and state of n. It reports whether n or
// anything in it is owned.
func (r *Report) visit(n *node, where place) bool {
	r.distribute(n)
	kind, names := n.kindOf()
	n.kind = kind
	inside := where.whole
	switch {
	case n.kind == Atomic && len(n.entries) > 0:
		inside = n.entries
	case len(n.twice) > 0:
		inside = slices.Compact(n.twice)
	}
	owned := false
	for i, child := range n.children {
		child.typ = cmp.Or(n.typeOf(child), unknown)
		child.elem = n.elementOf(child, i, names)
		child.entries = slices.Compact(child.entries) // several elements of an entry may select one item
		exempt, below := where.below.At(child.elem)
		owned = r.visit(child, place{
			whole:  inside,
			exempt: exempt || where.exempt && where.below == nil,
			below:  below,
		}) || owned
	}
	n.cursors = nil
	switch {
	case len(n.entries) > 0:
		n.state, owned = Owned, true
	case len(where.whole) > 0:
		n.state, n.entries, owned = Whole, where.whole, true
	case owned:
		n.state = Parent
	case where.exempt:
		n.state = Exempt
	default:
		n.state = Unowned
	}
	return owned
}

// distribute gives the cursors of n to the children that they select.
func (r *Report) distribute(n *node) {
	if len(n.cursors) == 0 {
		return // without making a finder
	}
	find := n.finder()
	for _, c := range n.cursors {
		for e, held := range c.below.Level() {
			targets := find(e)
			if len(targets) == 0 && !c.several {
				r.addAbsent(c.entry, n, e, held)
			}
			for _, i := range targets {
				child := n.children[i]
				if child.elem == (fieldpath.Element{}) {
					child.elem = e
				}
				if held.Member {
					child.entries = append(child.entries, c.entry)
				}
				if len(targets) > 1 && held.Below == nil {
					child.twice = append(child.twice, c.entry)
				}
				if held.Below != nil {
					child.cursors = append(child.cursors, cursor{c.entry, held.Below, c.several || len(targets) > 1})
				}
			}
		}
	}
}

// finder returns a function that finds the children of n that an element selects.
func (n *node) finder() func(fieldpath.Element) []int {
	switch v := n.value.(type) {
	case map[string]any:
		positions := make(map[fieldpath.Element][]int, len(n.children))
		for i, child := range n.children {
			positions[child.elem] = []int{i}
		}
		return func(e fieldpath.Element) []int { return positions[e] }
	case []any:
		return items.New(v, n.typ).Find
	}
	return func(fieldpath.Element) []int { return nil }
}

// kindOf returns the kind of n: its type's kind, if the value has its shape, or else the kind that the entries show. A
// list or map that is owned without any content is atomic, except for the item of a keyed list: a manager may own the
// item alone. names are the key fields of a keyed list: of its type, or else of the first key in the entries.
func (n *node) kindOf() (kind Kind, names []string) {
	m, isMap := n.value.(map[string]any)
	l, _ := n.value.([]any)
	switch t := n.typ; {
	case len(m)+len(l) == 0: // scalars, too
		return Value, nil
	case isMap && t.Map != nil && t.Map.IsAtomic(), !isMap && t.List != nil && t.List.IsAtomic():
		return Atomic, nil
	case isMap && t.Map != nil:
		return Map, nil
	case !isMap && t.List != nil && t.List.IsSet():
		return Set, nil
	case !isMap && t.List != nil:
		return KeyedList, slices.Collect(t.List.Keys())
	case len(n.entries) > 0 && len(n.cursors) == 0 && !n.elem.IsKey():
		return Atomic, nil
	case isMap:
		return Map, nil
	}
	kind = List
	for _, c := range n.cursors {
		for e := range c.below.Level() {
			if key, ok := e.Key(); ok {
				return KeyedList, fieldsets.NamesOf(key)
			}
			if e.IsValue() {
				kind = Set
			}
		}
	}
	return kind, nil
}

// unknown is the type of what the schema does not know.
var unknown = &typed.Type{}

// typeOf returns the type of a child of n; nil if the schema does not know it.
func (n *node) typeOf(child *node) *typed.Type {
	_, isMap := n.value.(map[string]any)
	switch t := n.typ; {
	case isMap && t.Map != nil:
		name, _ := child.elem.Field()
		typ, _ := t.Map.Child(name)
		return typ
	case !isMap && t.List != nil:
		return t.List.Elem()
	}
	return nil
}

// elementOf returns the element of a child of n in its path: the name of a map's entry; for an item, the element by the
// schema, or else by an entry, or else one like other items'.
func (n *node) elementOf(child *node, i int, names []string) fieldpath.Element {
	called := child.elem != (fieldpath.Element{})
	key := items.KeyOf(child.value, names, n.typ)
	switch {
	case len(key) > 0 && (!called || n.typ.List != nil):
		return fieldpath.KeyElement(key...)
	case n.kind == Set && items.IsScalar(child.value):
		return fieldpath.ValueElement(child.value)
	case called:
		return child.elem
	}
	return fieldpath.IndexElement(i)
}
