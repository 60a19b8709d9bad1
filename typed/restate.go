package typed

import (
	"bytes"
	"strings"

	"github.com/tenure-ssa/tenure/fieldpath"
)

// Restates reports whether applying applied again would do nothing at all: it
// changes nothing in live, and what it owns is exactly what fields says, the
// FieldsV1 of the manager's entry as it stands in an unstructured object. Paths
// of unowned are not owned whoever sets them, nor is what lies below one of them
// that has no longer path in unowned.
//
// It is one walk down applied, with a cursor into live and one into fields,
// that allocates next to nothing; what is in live and not in applied is not
// visited. It may be false although nothing would change, where telling costs
// more: then [Type.Validate], [Type.Merge] and [Type.FieldSet], its slow twins,
// decide. It is never true when one of them would disagree:
//
//	t.Validate(applied, Rules{}) == nil, but for what is inside an atomic list
//	    or map that equals live's, which was accepted once
//	t.Merge(live, applied) is live itself, or equal to it
//	t.FieldSet(applied) without unowned is the set of fields
func (t *Type) Restates(live, applied any, fields map[string]any, unowned *fieldpath.Set) bool {
	w := restater{name: make([]byte, 0, 128), left: MaxValues}
	o, ok := w.value(t, live, applied, fields, unowned, 0)
	return ok && !o.leaf && o.below == entryCount(fields)
}

// Container is a map or list that is read in place where a plain one would stand
// in a live value: one of a Go struct. Its children are plain scalars, plain
// trees, or Containers.
type Container interface {
	IsMap() bool
	IsList() bool
	// Len returns how many items a list has.
	Len() int
	// Get returns the entry of a map called name, if there is one.
	Get(name string) (v any, ok bool)
	// At returns an item of a list.
	At(i int) any
	// EqualJSON reports whether it is the same JSON value as a plain tree.
	EqualJSON(tree any) bool
}

// entryOf returns the entry of a live map called name, if there is one.
func entryOf(live any, name string) (v any, ok bool) {
	switch l := live.(type) {
	case map[string]any:
		v, ok = l[name]
	case Container:
		v, ok = l.Get(name)
	}
	return v, ok
}

func isLiveMap(live any) bool {
	switch l := live.(type) {
	case map[string]any:
		return true
	case Container:
		return l.IsMap()
	}
	return false
}

// lenOf returns how many items a live list has; ok is false when it is none.
func lenOf(live any) (n int, ok bool) {
	switch l := live.(type) {
	case []any:
		return len(l), true
	case Container:
		if l.IsList() {
			return l.Len(), true
		}
	}
	return 0, false
}

func itemOf(live any, i int) any {
	if l, ok := live.([]any); ok {
		return l[i]
	}
	return live.(Container).At(i)
}

// restater holds scratch space for one walk.
type restater struct {
	name []byte // the member name in FieldsV1 that is being looked up
	left int    // how many more values are looked at
}

// owns is what an intent owns at one place, given that it fits fields so far.
type owns struct {
	leaf  bool // the value is a leaf
	below int  // how many members of fields lie below it
}

var (
	ownsLeaf    = owns{leaf: true}
	ownsNothing = owns{}
)

// entryCount returns how many members fields has, itself left out.
func entryCount(fields map[string]any) int {
	if _, self := fields["."]; self {
		return len(fields) - 1
	}
	return len(fields)
}

// value walks one place. ok is false when the walk can't tell that the intent
// changes nothing there or that fields is what it owns.
func (w *restater) value(t *Type, live, applied any, fields map[string]any, unowned *fieldpath.Set, depth int) (o owns, ok bool) {
	if depth > MaxDepth {
		return ownsNothing, false
	}
	switch a := applied.(type) {
	case nil:
		return ownsLeaf, live == nil && t.shapes() != 0
	case map[string]any:
		if !isLiveMap(live) || t.Map == nil {
			return ownsNothing, false
		}
		if t.Map.Atomic {
			return ownsLeaf, w.sameJSON(live, a, depth)
		}
		if len(a) == 0 {
			return ownsNothing, true // the parent owns an empty map
		}
		return w.entries(t.Map, live, a, fields, unowned, depth)
	case []any:
		if _, ok := lenOf(live); !ok || t.List == nil {
			return ownsNothing, false
		}
		if t.List.Kind == AtomicList {
			return ownsLeaf, w.sameJSON(live, a, depth)
		}
		return w.items(t.List, live, a, fields, depth)
	}
	return ownsLeaf, t.Scalar.accepts(applied) && same(live, applied)
}

// sameJSON is Equal for values whose Go types are the same too, so that one can
// stand for the other in what is returned.
func (w *restater) sameJSON(a, b any, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	switch x := a.(type) {
	case Container:
		return x.EqualJSON(b)
	case map[string]any:
		y, ok := b.(map[string]any)
		if w.left -= len(x); !ok || len(x) != len(y) || w.left < 0 {
			return false
		}
		for k, v := range x {
			if other, ok := y[k]; !ok || !w.sameJSON(v, other, depth+1) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if w.left -= len(x); !ok || len(x) != len(y) || w.left < 0 {
			return false
		}
		for i := range x {
			if !w.sameJSON(x[i], y[i], depth+1) {
				return false
			}
		}
		return true
	}
	return same(a, b)
}

func (w *restater) entries(m *Map, live any, applied, fields map[string]any, unowned *fieldpath.Set, depth int) (owns, bool) {
	if w.left -= len(applied); w.left < 0 {
		return ownsNothing, false
	}
	count := 0
	for name, a := range applied {
		l, ok := entryOf(live, name)
		if !ok {
			return ownsNothing, false
		}
		t, declared := m.field(name)
		if t == nil {
			return ownsNothing, false
		}
		var left bool // the place itself is not owned
		var below *fieldpath.Set
		if unowned != nil {
			if left, below = unowned.At(fieldpath.Field(name)); left && below.Empty() {
				// Set but never owned: only the value counts. Containers are for
				// the slow path, which validates what is in them.
				if kindOf(a) == isMap || kindOf(a) == isList || !same(l, a) || a != nil && !t.Scalar.accepts(a) {
					return ownsNothing, false
				}
				continue
			}
		}
		if len(name) > fieldpath.MaxElement {
			return ownsNothing, false
		}
		w.name = append(append(w.name[:0], "f:"...), name...)
		sub, there := fields[string(w.name)].(map[string]any)
		o, ok := w.value(t, l, a, sub, below, depth+1)
		if !ok {
			return ownsNothing, false
		}
		o.leaf = !left && (o.leaf || !declared || isEmptyValue(a))
		switch o.fits(sub, there) {
		case fitsNot:
			return ownsNothing, false
		case fitsMember:
			count++
		}
	}
	return owns{below: count}, true
}

type fit uint8

const (
	fitsNot     fit = iota // the member of fields is another than what is owned
	fitsMember             // it is there and right
	fitsNothing            // nothing is owned and nothing is there
)

// fits compares what is owned at one place with its member of fields, which is
// there or not. o.leaf says that the place itself is owned.
func (o owns) fits(member map[string]any, there bool) fit {
	switch {
	case !o.leaf && o.below == 0:
		if there {
			return fitsNot
		}
		return fitsNothing
	case !there || o.below != entryCount(member):
		return fitsNot
	case o.below > 0:
		if _, marked := member["."]; marked != o.leaf {
			return fitsNot
		}
	}
	return fitsMember
}

// items walks a set or keyed list. Every item of applied must be in live, in
// live's order, and neither list may have an item twice.
func (w *restater) items(l *List, live any, applied []any, fields map[string]any, depth int) (owns, bool) {
	if len(applied) == 0 {
		return ownsNothing, true
	}
	if w.left -= len(applied); w.left < 0 || len(applied) > MaxItems {
		return ownsNothing, false
	}
	keys := l.sortedKeys()
	inLive, ok := l.follow(live, applied, keys)
	if !ok {
		return ownsNothing, false
	}
	// Distinct items are told by ascending names, and else by remembering them.
	var seen map[string]bool
	var space [64]byte
	prev := space[:0]
	for i, a := range applied {
		if !w.itemName(l, keys, a) || len(w.name) > fieldpath.MaxElement {
			return ownsNothing, false
		}
		if seen == nil && i > 0 && bytes.Compare(prev, w.name) >= 0 {
			prev = append(prev[:0], w.name...)
			seen = make(map[string]bool, len(applied))
			for _, before := range applied[:i] {
				w.itemName(l, keys, before)
				seen[string(w.name)] = true
			}
			w.name = append(w.name[:0], prev...)
		}
		if seen == nil {
			prev = append(prev[:0], w.name...)
		} else if name := string(w.name); seen[name] {
			return ownsNothing, false
		} else {
			seen[name] = true
		}
		sub, there := fields[string(w.name)].(map[string]any)
		at := i
		if inLive != nil {
			at = inLive[i]
		}
		o, ok := w.value(l.Elem, itemOf(live, at), a, sub, nil, depth+1)
		o.leaf = true
		if !ok || o.fits(sub, there) != fitsMember {
			return ownsNothing, false
		}
	}
	return owns{below: len(applied)}, true
}

// itemName writes the member name of item in FieldsV1 to w.name; keys are sorted.
func (w *restater) itemName(l *List, keys []string, item any) bool {
	w.name = w.name[:0]
	if l.Kind == SetList {
		w.name = append(w.name, "v:"...)
		return w.scalarName(item)
	}
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	w.name = append(w.name, "k:{"...)
	for _, key := range keys {
		v, ok := m[key]
		if !ok {
			if v = l.keyDefault(key); v == nil {
				continue
			}
		}
		if len(w.name) > len("k:{") {
			w.name = append(w.name, ',')
		}
		w.name = fieldpath.AppendName(w.name, key)
		w.name = append(w.name, ':')
		if !w.scalarName(v) {
			return false
		}
	}
	if len(w.name) == len("k:{") {
		return false
	}
	w.name = append(w.name, '}')
	return true
}

// scalarName appends the canonical JSON of v to w.name. Floats are left to the
// slow path.
func (w *restater) scalarName(v any) bool {
	switch v.(type) {
	case string, bool, int64:
		w.name = fieldpath.AppendScalar(w.name, v)
		return true
	}
	return false
}

// follow returns the positions in live of the items of applied, which must
// ascend; nil positions stand for 0, 1, 2 … . ok is false when applied has an
// item that live has not, or in another order, or that live has twice.
func (l *List) follow(live any, applied []any, keys []string) (positions []int, ok bool) {
	n, _ := lenOf(live)
	if n < len(applied) {
		return nil, false
	}
	if n == len(applied) {
		for i := range n {
			if !l.sameItem(itemOf(live, i), applied[i], keys) {
				return nil, false
			}
		}
		return nil, true
	}
	// Looking for an item in all of live costs len(live): that is paid for a few
	// items only.
	if len(applied) > maxFollowed {
		return nil, false
	}
	positions = make([]int, len(applied))
	for i, a := range applied {
		found := -1
		for j := range n {
			if l.sameItem(itemOf(live, j), a, keys) {
				if found >= 0 {
					return nil, false
				}
				found = j
			}
		}
		if found < 0 || i > 0 && found <= positions[i-1] {
			return nil, false
		}
		positions[i] = found
	}
	return positions, true
}

// maxFollowed is how many items of an intent are looked for one by one in a
// longer list.
const maxFollowed = 16

// sameItem reports whether two items have the same key or value, without
// defaults: an item that relies on one is left to the slow path unless the other
// does too.
func (l *List) sameItem(a, b any, keys []string) bool {
	if l.Kind == SetList {
		return same(a, b)
	}
	y, ok := b.(map[string]any)
	if !ok || !isLiveMap(a) {
		return false
	}
	for _, key := range keys {
		xv, xok := entryOf(a, key)
		yv, yok := y[key]
		if xok != yok {
			if xv, yv = l.orDefault(xv, xok, key), l.orDefault(yv, yok, key); xv == nil {
				return false
			}
		}
		if !same(xv, yv) {
			return false
		}
	}
	return true
}

func (l *List) orDefault(v any, there bool, key string) any {
	if there {
		return v
	}
	return l.keyDefault(key)
}

// Reconciled reports whether [Type.Reconcile] has nothing to change in the set
// of fields, a FieldsV1 as it stands in an unstructured object. It may be false
// for one that it does not understand.
func (t *Type) Reconciled(fields map[string]any) bool {
	left := fieldpath.MaxMembers
	return t.reconciled(fields, 0, &left)
}

// reconciled is Reconciled for fields at a depth; left is how many more members
// are looked at.
func (t *Type) reconciled(fields map[string]any, depth int, left *int) bool {
	if *left -= len(fields); *left < 0 || depth >= fieldpath.MaxDepth {
		return false
	}
	for name, member := range fields {
		below, ok := member.(map[string]any)
		if !ok {
			return false
		}
		if len(below) == 0 || name == "." {
			continue
		}
		child := t.childNamed(name)
		if child == nil {
			continue
		}
		switch child.shapes().first() {
		case mapShape:
			if child.Map.Untyped {
				continue
			}
			if child.Map.Atomic {
				return false
			}
		case listShape:
			if child.List.Kind == AtomicList {
				return false
			}
		default:
			continue
		}
		if !child.reconciled(below, depth+1, left) {
			return false
		}
	}
	return true
}

// childNamed is child for a member's name in FieldsV1.
func (t *Type) childNamed(name string) *Type {
	switch t.shapes().first() {
	case mapShape:
		if field, ok := strings.CutPrefix(name, "f:"); ok {
			child, _ := t.Map.field(field)
			return child
		}
		return t.Map.Elem
	case listShape:
		return t.List.Elem
	}
	return nil
}
