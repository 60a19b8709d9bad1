package gostruct

import (
	"fmt"
	"reflect"
)

// Sparse returns plain trees of two objects of one Go type that leave out what is
// equal in both. Both are empty when the objects are equal.
//
// Entries of structs and maps that are equal are left out of both trees. Where
// both sides have an entry, it differs, and it is a struct or map of one Go type
// on both, it stands in both trees with what differs in it; otherwise it is taken
// whole. So are lists, since how their items meet is not known here; what is equal
// at one index of both is one tree in memory, which a comparison need not visit.
// except are paths of names to entries that are left out whatever they are.
//
// Comparing the two trees by a type gives what comparing the full trees gives,
// whatever the topology, even where it is atomic. For what a comparison tells of
// a place depends on four things only, and for each pair that Sparse keeps they
// are those of the full pair:
//
//	which of the two sides have it     both, or the one that had it
//	what kinds of values they are      a map stands as a map, others whole
//	whether they are equal             never, by construction
//	whether both are empty             maps that differ have an entry that does
//
// and for its children, which are compared by the same four or not at all: an
// equal child adds nothing to a comparison.
//
// The cost is one walk over both objects, and trees of what differs. What is the
// same pointer, map or slice on both sides is not visited. The trees may share
// memory with each other and, as all trees here, with the objects.
func Sparse(old, now any, except ...[]string) (oldTree, nowTree map[string]any, err error) {
	a, err := Of(old)
	if err != nil {
		return nil, nil, err
	}
	b, err := Of(now)
	if err != nil {
		return nil, nil, err
	}
	if a.form != b.form {
		return nil, nil, fmt.Errorf("expected two objects of one type, got %T and %T", old, now)
	}
	var d difference
	if a.v.Kind() != reflect.Map || a.v.Pointer() != b.v.Pointer() {
		if d, err = sparseEntries(a.form, a.v, b.v, except, 0); err != nil {
			return nil, nil, err
		}
	}
	d.make()
	return d.old, d.now, nil
}

// difference holds the entries of two maps that differ; the maps are nil until
// there is one.
type difference struct{ old, now map[string]any }

func (d *difference) make() {
	if d.old == nil {
		d.old, d.now = map[string]any{}, map[string]any{}
	}
}

// sparse returns the trees of two values that stand at one place; differ is false
// when they are equal.
func sparse(f *form, a reflect.Value, g *form, b reflect.Value, except [][]string, depth int) (x, y any, differ bool, err error) {
	if depth > MaxDepth {
		return nil, nil, false, errTooDeep
	}
	if f == g && sameMemory(f, a, b) {
		return nil, nil, false, nil
	}
	if f, a = settle(f, a); true {
		g, b = settle(g, b)
	}
	if f == g && (f.kind == structKind || f.kind == mapKind) {
		if f.kind == mapKind && (sameMemory(f, a, b) || except == nil && equalTexts(a, b)) {
			return nil, nil, false, nil
		}
		d, err := sparseEntries(f, a, b, except, depth)
		return d.old, d.now, d.old != nil, err
	}
	if equal(f, a, g, b, depth) {
		return nil, nil, false, nil
	}
	if f == g && f.kind == listKind {
		x, y, _, err = share(f, a, g, b, depth)
		return x, y, true, err
	}
	if x, err = tree(f, a, except, depth); err != nil {
		return nil, nil, false, err
	}
	if y, err = tree(g, b, except, depth); err != nil {
		return nil, nil, false, err
	}
	return x, y, true, nil
}

func sparseEntries(f *form, a, b reflect.Value, except [][]string, depth int) (d difference, err error) {
	each := eachField
	if f.kind == mapKind {
		each = eachEntry
	}
	err = each(f, a, b, func(name string, a, b side) error { return d.entry(name, a, b, except, depth) })
	return d, err
}

// entry adds an entry to d if it differs. At least one side has it.
func (d *difference) entry(name string, a, b side, except [][]string, depth int) error {
	var rest [][]string
	if except != nil {
		var ends bool
		if rest, ends = below(except, name); ends {
			return nil
		}
	}
	var x, y any
	var err error
	differ := true
	switch {
	case !b.there:
		x, err = tree(a.form, a.v, rest, depth+1)
	case !a.there:
		y, err = tree(b.form, b.v, rest, depth+1)
	default:
		x, y, differ, err = sparse(a.form, a.v, b.form, b.v, rest, depth+1)
	}
	if err != nil {
		return atField(name, err)
	}
	if !differ {
		return nil
	}
	d.make()
	if a.there {
		d.old[name] = x
	}
	if b.there {
		d.now[name] = y
	}
	return nil
}
