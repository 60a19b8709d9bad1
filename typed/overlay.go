package typed

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/fieldpath"
)

// Overlaid is what [Type.Overlay] finds.
type Overlaid struct {
	// Merged is live with the intent laid over it: live itself, the same map in
	// memory, unless Changed.
	Merged any
	// Changed says that the intent changes live.
	Changed bool
	// Fields is the FieldsV1 of what the intent owns: the one that was given,
	// unless Moved.
	Fields map[string]any
	// Moved says that the intent owns other fields than those that were given.
	Moved bool
}

// Overlay lays applied over live: it validates applied, merges it, and brings
// fields, the FieldsV1 of the manager's last apply as it stands in an
// unstructured object, up to what applied owns; {} is that of a manager who
// applies for the first time. When fields is nil, what applied owns is not asked
// for, and Fields says nothing. live is nil for an object that is new.
// Paths of unowned are not owned whoever sets them, nor is what lies below one of
// them that has no longer path in unowned.
//
// It is one walk down applied, with a cursor into live and one into fields. What
// is in live and not in applied is not visited, and what does not change is
// shared, of live and of fields; so it costs as much as the intent is large, and
// allocates as much as changes. It deals with the writes that are common and is
// false for the others: when the intent is invalid, when it drops something that
// it owned, when it adds items to a list or reorders some of them, when the shape
// of a value changes. Then [Type.Validate], [Type.Merge] and [Type.FieldSet], its slow
// twins, have the word. When it is true, they agree:
//
//	t.Validate(applied, Rules{Standing: live}) == nil
//	t.Merge(live, applied) equals Merged, and equals live if not Changed
//	t.FieldSet(applied) without unowned is the set of Fields, and that of fields
//	    within it
//
// For a live object in place of a Go struct there is [Type.Restates].
func (t *Type) Overlay(live, applied any, fields map[string]any, unowned *fieldpath.Set) (Overlaid, bool) {
	if live == nil {
		live = missing
	}
	w := overlay{name: make([]byte, 0, 128), left: MaxValues, blind: fields == nil}
	p, ok := w.value(t, live, applied, owned{tree: fields}, unowned, 0)
	if !ok || p.leaf {
		return Overlaid{}, false
	}
	out := Overlaid{Merged: live, Fields: fields}
	if p.changed {
		out.Merged, out.Changed = p.merged, true
	}
	if p.fields != nil {
		delete(p.fields, ".")
		out.Fields, out.Moved = p.fields, true
	}
	return out, true
}

// Restates reports whether [Type.Overlay] would change nothing: neither live nor
// fields, which stands decoded here. live may hold a [Container] in the place of a
// map or list.
func (t *Type) Restates(live, applied any, fields, unowned *fieldpath.Set) bool {
	w := overlay{name: make([]byte, 0, 128), left: MaxValues, fixed: true}
	p, ok := w.value(t, live, applied, owned{set: fields}, unowned, 0)
	return ok && !p.leaf && !p.changed
}

// owned is a cursor into what the manager owned before: into a FieldsV1 as it
// stands in an unstructured object, or into a set.
type owned struct {
	tree map[string]any
	set  *fieldpath.Set
	mark bool // the place itself is in the set
}

// count returns how many members there are, but for a mark of its own.
func (o owned) count() int {
	if len(o.tree) > 0 {
		return entryCount(o.tree)
	}
	return o.set.Width()
}

// empty reports whether there are no members, nor a mark of its own in a tree.
func (o owned) empty() bool { return len(o.tree) == 0 && o.set.Width() == 0 }

// marked reports whether the place itself is owned, of one that has members.
func (o owned) marked() bool {
	_, mark := o.tree["."]
	return mark || o.mark
}

// find returns the member of a name, if there is one; it is odd if it is no set.
// Near is where it may be expected among the others.
func (o owned) find(name []byte, near int) (member owned, there, odd bool) {
	if o.set != nil {
		e, there := o.set.Find(name, near)
		return owned{set: e.Below, mark: e.Member}, there, false
	}
	v, there := o.tree[string(name)]
	tree, _ := v.(map[string]any)
	return owned{tree: tree}, there, there && tree == nil
}

// overlay holds scratch space for one walk.
type overlay struct {
	name  []byte // the member name in FieldsV1 that is being looked up
	lacks bool   // the item of that name lacks a key field
	left  int    // how many more values are looked at
	fixed bool   // nothing can be changed: it is only asked whether something would
	blind bool   // what is owned is not asked for
	guess int    // how many guesses of where items stand it is inside of
	wrong bool   // one of them was wrong, so that there are no more
}

// maxGuesses bounds how often a value is walked again because of a wrong guess.
const maxGuesses = 4

// place is what comes of one place of live and applied.
//
//	changed      ⇒  merged is the value there, and not live's
//	fields != nil ⇒  it holds count members, and a mark of its own maybe; it is
//	                 new, and not what was given for the place
//	fields == nil ⇒  what was given holds count members, and they are right
type place struct {
	merged  any
	changed bool
	leaf    bool // the value is a leaf, and owned itself
	count   int  // members below that are owned
	fields  map[string]any
}

// entryCount returns how many members fields has, itself left out.
func entryCount(fields map[string]any) int {
	if _, self := fields["."]; self {
		return len(fields) - 1
	}
	return len(fields)
}

// value walks one place; live may be missing. ok is false when the walk can't
// tell what comes of it.
func (w *overlay) value(t *Type, live, applied any, fields owned, unowned *fieldpath.Set, depth int) (p place, ok bool) {
	if depth > MaxDepth {
		return p, false
	}
	switch a := applied.(type) {
	case string:
		// Most values are texts that stay: they need no more than this.
		if l, ok := live.(string); ok && l == a && (t.Scalar == String || t.Scalar == Untyped) && fields.count() == 0 {
			return place{leaf: true}, true
		}
	case map[string]any:
		switch {
		case t.Map == nil || !isMissing(live) && !isLiveMap(live):
			return p, false
		case t.Map.Atomic:
			return w.atomic(t, live, a, fields, depth)
		case len(a) > 0:
			return w.entries(t.Map, live, a, fields, unowned, depth)
		}
		// The parent owns an empty map.
		return place{merged: applied, changed: isMissing(live)}, fields.count() == 0
	case []any:
		_, isList := lenOf(live)
		switch {
		case t.List == nil || !isMissing(live) && !isList:
			return p, false
		case t.List.Kind == AtomicList:
			return w.atomic(t, live, a, fields, depth)
		case len(a) > 0:
			if !unowned.Empty() {
				return p, false // of single items, which no host resets
			}
			return w.items(t.List, live, a, fields, depth)
		}
		return place{merged: applied, changed: isMissing(live)}, fields.count() == 0
	}
	return w.scalar(t, live, applied, fields)
}

// scalar walks a scalar or null.
func (w *overlay) scalar(t *Type, live, applied any, fields owned) (p place, ok bool) {
	if fields.count() > 0 {
		return p, false
	}
	p = place{leaf: true}
	switch {
	case applied == nil && t.shapes() == 0, applied != nil && !t.Scalar.accepts(applied):
		return p, false
	case same(live, applied):
		return p, true
	case isMissing(live):
	case applied == nil, kindOf(live) == isMap, kindOf(live) == isList, kindOf(live) == notJSON, Equal(live, applied):
		// A null leaves what is in a container, and equal numbers of different Go
		// types change nothing.
		return p, false
	}
	if finite(applied) != nil {
		return p, false
	}
	p.merged, p.changed = applied, true
	return p, true
}

// atomic walks a list or map that is owned as a whole.
func (w *overlay) atomic(t *Type, live, applied any, fields owned, depth int) (p place, ok bool) {
	if fields.count() > 0 {
		return p, false
	}
	p = place{leaf: true}
	if !isMissing(live) {
		if w.sameJSON(live, applied, depth) {
			return p, true
		}
		if w.fixed || Equal(live, applied) {
			return p, false
		}
	}
	v := validator{depth: depth}
	if v.value(t, applied, nil); len(v.errs) > 0 {
		return p, false
	}
	p.merged, p.changed = applied, true
	return p, true
}

// sameJSON is Equal for values whose Go types are the same too, so that one can
// stand for the other in what is returned.
func (w *overlay) sameJSON(a, b any, depth int) bool {
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
			other, ok := y[k]
			if !ok {
				return false
			}
			if text, isText := v.(string); isText && depth < MaxDepth { // as most are; see equal
				if s, ok := other.(string); !ok || text != s {
					return false
				}
			} else if !w.sameJSON(v, other, depth+1) {
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

// entries walks a map, of which applied has at least one entry.
func (w *overlay) entries(m *Map, live any, applied map[string]any, fields owned, unowned *fieldpath.Set, depth int) (p place, ok bool) {
	if w.left -= len(applied); w.left < 0 {
		return p, false
	}
	created := isMissing(live)
	plain, isPlain := live.(map[string]any)
	var merged map[string]any // live with what changes, once something does
	known := 0                // members of fields that were found
	for name, a := range applied {
		t, declared := m.field(name)
		if t == nil || len(name) > fieldpath.MaxElement {
			return p, false
		}
		l, has := missing, false
		if isPlain {
			l, has = plain[name]
		} else if !created {
			l, has = entryOf(live, name)
		}
		if !has {
			l = missing
		}
		var never bool // the place itself is never owned
		var below *fieldpath.Set
		if unowned != nil {
			never, below = unowned.At(fieldpath.Field(name))
		}
		var sub owned
		var there, odd bool
		if !w.blind && (!never || !below.Empty()) {
			w.name = append(append(w.name[:0], "f:"...), name...)
			if sub, there, odd = fields.find(w.name, 0); odd {
				return p, false
			}
		}
		blind := w.blind
		w.blind = blind || never && below.Empty()
		child, ok := w.value(t, l, a, sub, below, depth+1)
		w.blind = blind
		if !ok {
			return p, false
		}
		if child.changed && !created {
			if merged == nil {
				if w.fixed {
					return p, false
				}
				merged = cloneFor(plain, len(applied))
			}
			merged[name] = child.merged
		}
		if w.blind {
			continue
		}
		own := !never && (child.leaf || !declared || isEmptyValue(a))
		if never && below.Empty() || !own && child.count == 0 {
			if there {
				return p, false
			}
			continue
		}
		if there {
			known++
			if !own && (sub.empty() || sub.marked()) {
				return p, false // the place itself was dropped
			}
		}
		p.count++
		if !there || child.fields != nil || own && !child.fits(sub) {
			if w.fixed {
				return p, false
			}
			if p.fields == nil {
				p.fields = cloneFor(fields.tree, len(applied))
			}
			p.fields["f:"+name] = child.member(sub.tree, own)
		}
	}
	if known != fields.count() {
		return p, false // something was dropped
	}
	switch {
	case created:
		p.merged, p.changed = applied, true
	case merged != nil:
		p.merged, p.changed = merged, true
	}
	return p, true
}

// cloneFor returns a copy of m that has room for at least n entries.
func cloneFor(m map[string]any, n int) map[string]any {
	if len(m) >= n {
		return maps.Clone(m) // which is faster
	}
	out := make(map[string]any, n)
	maps.Copy(out, m)
	return out
}

// fits reports whether what is owned at a place, itself among it, is what its member
// of fields says.
func (p *place) fits(member owned) bool {
	return p.fields == nil && (p.count == 0 || member.marked())
}

// member returns the member of a FieldsV1 that says what is owned at a place; was is
// the one before, which is not changed.
func (p *place) member(was map[string]any, own bool) map[string]any {
	if p.count == 0 {
		return map[string]any{}
	}
	out := p.fields
	if out == nil {
		out = maps.Clone(was)
	}
	if own {
		out["."] = map[string]any{}
	} else {
		delete(out, ".")
	}
	return out
}

// items walks a set or keyed list, of which applied has at least one item. Every
// item of applied must be in live, in live's order unless it has all of them, or
// live have no items; no list may have an item twice.
func (w *overlay) items(l *List, live any, applied []any, fields owned, depth int) (p place, ok bool) {
	if w.left -= len(applied); w.left < 0 || len(applied) > MaxItems {
		return p, false
	}
	x := follower{list: l, keys: l.sortedKeys()}
	n, _ := lenOf(live)
	if n == len(applied) && !w.wrong && w.guess < maxGuesses {
		// The same items, in the same order: that they are the same is only asked
		// where they differ.
		w.guess++
		p, ok, met := w.itemsAt(&x, live, applied, nil, fields, depth, true)
		w.guess--
		if met {
			return p, ok
		}
		w.wrong = true
	}
	switch {
	case n == 0 && w.fixed:
		return p, false
	case n == 0:
		p, ok, _ = w.itemsAt(&x, missing, applied, nil, fields, depth, false)
		return p, ok
	case x.follow(live, n, applied):
		p, ok, _ = w.itemsAt(&x, live, applied, nil, fields, depth, false)
		return p, ok
	case w.fixed || n != len(applied) || !x.permute(live.([]any), applied):
		return p, false
	}
	// The intent has all items: their order is the intent's.
	merged := make([]any, n)
	for i := range applied {
		merged[i] = live.([]any)[x.at(i)]
	}
	p, ok, _ = w.itemsAt(&x, live, applied, merged, fields, depth, false)
	return p, ok
}

// itemsAt walks items of which x knows where they stand in live. merged is the list
// in another order than live's, or nil. When that is but a guess, met is false if an
// item does not meet the same one, and the rest says nothing.
func (w *overlay) itemsAt(x *follower, live any, applied, merged []any, fields owned, depth int, guess bool) (p place, ok, met bool) {
	l := x.list
	created, reordered := isMissing(live), merged != nil
	known := 0 // members of fields that were found
	var space [64]byte
	prev := space[:0]
	for i, a := range applied {
		if !w.itemName(l, x.keys, a) || len(w.name) > fieldpath.MaxElement {
			return p, false, true
		}
		lacks := w.lacks
		// Distinct items are told by ascending names, and else by hashing them all.
		if !x.distinct {
			if i > 0 && bytes.Compare(prev, w.name) >= 0 {
				if !x.checkDistinct(applied) {
					return p, false, true
				}
			}
			prev = append(prev[:0], w.name...)
		}
		sub, there, odd := fields.find(w.name, i)
		name := ""
		switch {
		case w.blind:
		case odd, w.fixed && !there:
			return p, false, true
		case !there:
			name = string(w.name)
		default:
			known++
		}
		li, at := missing, i
		if !created {
			at = x.at(i)
			li = itemOf(live, at)
		}
		child, ok := w.value(l.Elem, li, a, sub, nil, depth+1)
		// An item that changes nothing has the key that it meets, if it has one.
		if guess && (!ok || child.changed || lacks) && !l.sameItem(li, a, x.keys) {
			return p, false, false
		}
		if !ok {
			return p, false, true
		}
		if child.changed && !created {
			if merged == nil {
				if w.fixed {
					return p, false, true
				}
				merged = slices.Clone(live.([]any))
			}
			if reordered {
				at = i
			}
			merged[at] = child.merged
		}
		if w.blind {
			continue
		}
		if !there || !child.fits(sub) {
			if w.fixed {
				return p, false, true
			}
			if p.fields == nil {
				p.fields = cloneFor(fields.tree, len(applied))
			}
			if name == "" {
				w.itemName(l, x.keys, a)
				name = string(w.name)
			}
			p.fields[name] = child.member(sub.tree, true)
		}
	}
	if known != fields.count() {
		return p, false, true // something was dropped
	}
	p.count = len(applied)
	switch {
	case created:
		p.merged, p.changed = applied, true
	case merged != nil:
		p.merged, p.changed = merged, true
	}
	return p, true, true
}

// itemName writes the member name of item in FieldsV1 to w.name, and to w.lacks
// whether the item lacks a key field; keys are sorted.
func (w *overlay) itemName(l *List, keys []string, item any) bool {
	w.name, w.lacks = w.name[:0], false
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
			w.lacks = true
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
func (w *overlay) scalarName(v any) bool {
	switch v.(type) {
	case string, bool, int64:
		w.name = fieldpath.AppendScalar(w.name, v)
		return true
	}
	return false
}
