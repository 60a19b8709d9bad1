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

// cursor points into an entry: it has the part of the entry's paths below a node.
type cursor struct {
	entry int
	below *fieldpath.Set
	// several is true below duplicate items. A field that one duplicate lacks may be in another, so fields below
	// duplicates are never reported as absent.
	several bool
	// wholes has the values below the node that are owned as a whole at the entry's version. It is nil if these values
	// are unknown, or if the object has the same version.
	wholes *fieldpath.Set
}

// place is the ownership that a node inherits from its parents.
type place struct {
	// whole are the entries that own the node through an atomic list or map, or a duplicate item, around it.
	whole []int
	// exempt is true if the node never has an owner. below has the paths in the node that never have an owner; in an
	// exempt node, nil means all paths.
	exempt bool
	below  *fieldpath.Set
}

// attribute walks down the object once, with the cursors of all entries, and finds the owners of each node.
func (r *Report) attribute(root *node, t *typed.Type, cursors []cursor) {
	root.typ, root.cursors = cmp.Or(t, unknown), cursors
	r.visit(root, place{below: managedfields.Unowned()})
}

// visit passes the cursors of n on to its children, visits the children, and sets the kind and state of n. It reports
// whether n, or a value in n, is owned.
func (r *Report) visit(n *node, where place) bool {
	r.distribute(n)
	kind, names := n.kindOf()
	n.kind = kind
	inside := where.whole
	switch {
	case n.kind == Atomic && len(n.entries) > 0:
		inside = n.entries
	case len(n.wholly) > 0:
		inside = slices.Compact(n.wholly)
	}
	owned := false
	for i, child := range n.children {
		child.typ = cmp.Or(n.typeOf(child), unknown)
		child.elem = n.elementOf(child, i, names)
		child.entries = slices.Compact(child.entries) // several elements of an entry may select the same item
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

// distribute passes the cursors of n on to the children that they select.
func (r *Report) distribute(n *node) {
	if len(n.cursors) == 0 {
		return // making a finder is expensive
	}
	find := n.finder()
	for _, c := range n.cursors {
		for e, held := range c.below.Level() {
			targets := find(e)
			isWhole, wholes := c.wholes.At(e)
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
				if held.Below == nil && (isWhole || len(targets) > 1) {
					child.wholly = append(child.wholly, c.entry)
				}
				if held.Below != nil {
					several := c.several || len(targets) > 1
					child.cursors = append(child.cursors, cursor{c.entry, held.Below, several, wholes})
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

// kindOf returns the kind of n: the kind of its type if the value matches the type, otherwise the kind that the entries
// show. Without a type, a list or map that is owned without any content is atomic, unless it is an item of a keyed
// list: a manager may own an item without its content. names are the key fields of a keyed list, from its type or else
// from the first key in the entries.
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

// unknown is the type of values that the schema does not describe.
var unknown = &typed.Type{}

// typeOf returns the type of a child of n; nil if the schema does not describe it.
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

// elementOf returns the path element of a child of n. In a map, it is the name. In a list, it is the element that
// follows from the schema, or else the element that an owner's entry has, or else an element of the same form as the
// elements of other items, or else the position.
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
