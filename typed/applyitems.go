package typed

import (
	"bytes"
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// maxGuesses bounds how often a value is walked again because of a wrong guess. A list is walked twice if the guess for
// it is wrong, and so are the lists in its items, each of which may have been guessed wrong before. Without a bound,
// the cost would double with each level.
const maxGuesses = 4

// items walks a set or keyed list, of which applied has at least one item. There are three ways, tried in this order:
//
//	guess   of lists of one length: applied[i] meets live[i]. It ends at the first item with another key.
//	match   the matcher pairs the items, the merged list is laid out if its order is not live's, and the items are
//	        walked
//	twins   of lists with a duplicate in live: the plain operations do it
//
// The guess is so cheap because it asks for no keys. An item that changes nothing has the values of the one that it
// meets, and so its key; only an item that changes something is asked whether it is the same one. For example, live
// [{name: a, x: 1}, {name: b}] and applied [{name: a, x: 1}, {name: c}]: the first item changes nothing, the second
// changes its name, so the guess was wrong.
func (w *walk) items(t *Type, live any, applied []any, last owned, depth int) (p place, ok bool) {
	if w.left -= len(applied); w.left < 0 || len(applied) > MaxItems {
		return p, false
	}
	w.guessing = nil // it is of lists that live does not have
	x := itemWalk{w: w, matcher: t.List.matcher(), live: live, applied: applied, last: last, depth: depth}
	n, _ := lenOf(live)
	if n == len(applied) && !w.guessed && w.guess < maxGuesses {
		// The same items in the same order is so common that it is a guess: that items
		// are the same is only asked where they differ.
		w.guess++
		p, ok, met := x.walk(true)
		w.guess--
		if met {
			return p, ok
		}
		w.guessed, x.merged = true, nil
	}
	if n == 0 {
		x.isNew = true
		p, ok, _ = x.walk(false)
		return p, ok
	}
	if !x.match(live, n, applied) {
		return w.plain(t, live, applied, last, nil, depth)
	}
	if !x.sorted {
		x.reorder(n)
	}
	p, ok, _ = x.walk(false)
	return p, ok
}

// itemWalk is the walk of one list.
type itemWalk struct {
	w *walk
	matcher
	live    any
	applied []any
	last    owned
	depth   int

	isNew bool    // live has no items
	slots []int32 // positions of applied's items in the merged list; nil if they are live's
	// merged is the merged list, once it differs from live.
	merged []any
}

// reorder lays out a merged list that has other items than live, or the same in another
// order (spec rule 3.7). For example, live [a b c] and applied [c x a] are merged to [b c x a]; slots is [1 2 3], where
// the items of applied go once they are merged with those of live.
func (x *itemWalk) reorder(n int) {
	order := x.order(n, len(x.applied))
	x.merged = make([]any, len(order))
	x.slots = make([]int32, len(x.applied))
	for slot, from := range order {
		if from >= 0 {
			x.merged[slot] = itemOf(x.live, from)
			continue
		}
		x.slots[-1-from] = int32(slot)
		if at := x.position(-1 - from); at >= 0 {
			x.merged[slot] = itemOf(x.live, at)
		}
	}
}

// walk walks the items of applied, of which the matcher knows where live has them. When
// that is but a guess, met is false if an item does not meet the same one, and the rest
// says nothing.
func (x *itemWalk) walk(guess bool) (p place, ok, met bool) {
	w, l := x.w, x.list
	known := 0 // members of last that were met
	var below *deltas
	var space [64]byte
	prev := space[:0]
	for i, a := range x.applied {
		if !w.itemName(l, x.keys, a) || len(w.name) > fieldpath.MaxElement {
			return p, false, true
		}
		lacks := w.lacks
		if !x.isTable {
			// An intent has no duplicates (spec rule 1.3). Names that ascend are distinct, which most lists show with one
			// comparison for each item. The first that does not ascend has all items hashed, once: see isTable.
			if i > 0 && bytes.Compare(prev, w.name) >= 0 && !x.hashItems(x.applied) && !x.areDistinct() {
				return p, false, true
			}
			prev = append(prev[:0], w.name...)
		}
		var sub owned
		var was bool
		name := ""
		if !w.blind {
			if sub, was = w.find(x.last, i); w.stale {
				return p, false, true
			}
			if was {
				known++
			} else if !w.sets {
				name = string(w.name)
			}
		}
		li := missing
		if at := x.position(i); !x.isNew && at >= 0 {
			li = itemOf(x.live, at)
		}
		child, ok := w.value(l.Elem, li, a, sub, nil, x.depth+1)
		// An item that changes nothing has the key that it meets, if it has one.
		if guess && (!ok || child.changed || lacks) && !l.sameItem(li, a, x.keys) {
			return p, false, false
		}
		if !ok {
			return p, false, true
		}
		if child.changed && !x.isNew {
			x.put(i, child.merged)
		}
		gained := false
		if was && !child.moved && sub.isMember() {
			p.count++ // what own would do, of most items
		} else if !w.blind {
			gained = x.own(&p, &child, sub, was, name, a)
		}
		if child.delta != nil || gained {
			e, err := l.element(a)
			if err != nil {
				return p, false, true
			}
			below = below.with(e, child.delta, gained, false)
		}
	}
	if known != x.last.count() && !w.dropUnmet(&p, &below, x.last, x.applies()) {
		return p, false, true
	}
	switch {
	case x.isNew:
		p.merged, p.changed = x.applied, true
	case x.merged != nil:
		p.merged, p.changed = x.merged, true
	}
	p.delta = below.result(w.Compare && isMissing(x.live))
	return p, true, true
}

// put puts the item of applied at i, merged, into the merged list.
func (x *itemWalk) put(i int, item any) {
	if x.merged == nil {
		x.merged = cloneItems(x.live)
	}
	if x.slots != nil {
		i = int(x.slots[i])
	} else {
		i = x.position(i)
	}
	x.merged[i] = item
}

// own puts what is owned of an item into p: the item itself, and the child below it, one of which was not owned as it
// is now. It returns whether the item itself was not owned before, where last is a set. name is its
// name in a FieldsV1, or empty where last has it.
func (x *itemWalk) own(p, child *place, sub owned, was bool, name string, item any) (gained bool) {
	p.count++
	wasOwn := was && sub.isMember()
	p.moved = true
	if x.w.sets {
		return !wasOwn
	}
	if p.fields == nil {
		p.fields = cloneFor(x.last.tree, len(x.applied))
	}
	if name == "" {
		x.w.itemName(x.list, x.keys, item)
		name = string(x.w.name)
	}
	p.fields[name] = child.fieldsV1(sub.tree, true)
	return false
}

// areDistinct reports whether no item of applied is in it twice, of items that the
// matcher can't hash.
func (x *itemWalk) areDistinct() bool {
	index := x.list.indexOf(x.applied)
	return index.many == nil && len(index.at) == len(x.applied)
}

// applies returns a function that reports whether applied has the item of an element,
// whose name in a FieldsV1 it may be given. It is only asked for if something was dropped, so that most walks of a list
// keep no names.
func (x *itemWalk) applies() func(e fieldpath.Element, name string) bool {
	names := make(map[string]struct{}, len(x.applied))
	for _, item := range x.applied {
		if x.w.itemName(x.list, x.keys, item) {
			names[string(x.w.name)] = struct{}{}
		}
	}
	return func(e fieldpath.Element, name string) bool {
		if name == "" {
			name = e.Text()
			switch e.Kind() {
			case fieldpath.KindKey:
				name = "k:" + name
			case fieldpath.KindValue:
				name = "v:" + name
			}
		}
		_, ok := names[name]
		return ok
	}
}

// cloneItems returns a copy of a live list.
func cloneItems(live any) []any {
	if plain, ok := live.([]any); ok {
		return slices.Clone(plain)
	}
	n, _ := lenOf(live)
	out := make([]any, n)
	for i := range out {
		out[i] = itemOf(live, i)
	}
	return out
}

// itemName writes the member name of item in FieldsV1 to w.name, and to w.lacks
// whether the item lacks a key field; keys are sorted.
func (w *walk) itemName(l *List, keys []string, item any) bool {
	w.name, w.lacks = w.name[:0], false
	if l.Kind == SetList {
		w.name = append(w.name, "v:"...)
		return w.scalarName(item) || w.elementName("v:", l, item)
	}
	m, isPlain := item.(map[string]any)
	if !isPlain && !isLiveMap(item) {
		return false
	}
	w.name = append(w.name, "k:{"...)
	for _, key := range keys {
		v, ok := m[key]
		if !isPlain {
			v, ok = entryOf(item, key)
		}
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
			return w.elementName("k:", l, item)
		}
	}
	if len(w.name) == len("k:{") {
		return false
	}
	w.name = append(w.name, '}')
	return true
}

// elementName is itemName for items with values that are rare in keys and sets.
func (w *walk) elementName(prefix string, l *List, item any) bool {
	e, err := l.element(item)
	w.name = append(append(w.name[:0], prefix...), e.Text()...)
	return err == nil
}

// scalarName appends the canonical JSON of v to w.name, of the values that are common
// in keys and sets.
func (w *walk) scalarName(v any) bool {
	switch v.(type) {
	case string, bool, int64:
		w.name = fieldpath.AppendScalar(w.name, v)
		return true
	}
	return false
}
