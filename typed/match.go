package typed

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// matcher pairs the items of two lists, live and applied, that have the same key or
// value. It never computes an element, whose canonical text would cost more than all
// the rest: it compares items by their key fields, and where that would take too long,
// looks them up by a hash of these. It does so in three steps, from the most common
// case to the least:
//
//	the same items in the same order   one comparison for each item
//	few items of applied               each is searched for in live
//	others                             each item of live is looked up in a hash table
//
// All cost O(len(live) + len(applied)). It pairs nothing where an item is twice in one
// of the lists, or can't be told from others; the element by element twins, which use
// [List.indexOf], do those lists.
//
//	liveAt == nil       the items of applied are those of live, one by one
//	liveAt[i] == j ≥ 0  applied[i] is live[j]
//	liveAt[i] == -1     live has no such item
type matcher struct {
	list *List
	keys []string // of list, sorted

	liveAt  []int32
	sorted  bool // liveAt has no -1, and ascends
	isTable bool // table holds the items of applied, which are distinct
	table   itemTable
}

func (l *List) matcher() matcher { return matcher{list: l, keys: l.sortedKeys()} }

// sortedKeys returns the key fields of l's items in their order in an element.
func (l *List) sortedKeys() []string {
	if slices.IsSorted(l.Keys) {
		return l.Keys
	}
	return slices.Sorted(slices.Values(l.Keys))
}

// maxSearched is how many items are searched for one by one in a list.
const maxSearched = 8

// position returns where live has the item of applied at i; -1 for nowhere.
func (x *matcher) position(i int) int {
	if x.liveAt == nil {
		return i
	}
	return int(x.liveAt[i])
}

// match pairs the items of applied with those of live, which has n. It is false for
// lists that it can't pair. It does not say whether applied has an item twice where
// it pairs the same items in the same order.
func (x *matcher) match(live any, n int, applied []any) bool {
	if n == len(applied) && x.sameItems(live, applied) {
		x.liveAt, x.sorted = nil, true
		return true
	}
	if len(applied) <= maxSearched {
		if !x.search(live, n, applied) {
			return false
		}
	} else if !x.lookUp(live, n, applied) {
		return false
	}
	x.sorted = true
	for i, at := range x.liveAt {
		x.sorted = x.sorted && at >= 0 && (i == 0 || at > x.liveAt[i-1])
	}
	return true
}

// sameItems reports whether two lists of one length have the same items in the same
// order.
func (x *matcher) sameItems(live any, applied []any) bool {
	for i := range applied {
		if !x.list.sameItem(itemOf(live, i), applied[i], x.keys) {
			return false
		}
	}
	return true
}

// search looks for a few items one by one.
func (x *matcher) search(live any, n int, applied []any) bool {
	x.liveAt = make([]int32, len(applied))
	for i, a := range applied {
		if !x.list.isSelectable(a, x.keys) || x.list.hasItem(applied[:i], a, x.keys) {
			return false
		}
		x.liveAt[i] = -1
	}
	for j := range n {
		item := itemOf(live, j)
		if !x.list.isSelectable(item, x.keys) {
			return false
		}
		for i, a := range applied {
			if !x.list.sameItem(item, a, x.keys) {
				continue
			}
			if x.liveAt[i] >= 0 {
				return false
			}
			x.liveAt[i] = int32(j)
			break
		}
	}
	return true
}

// lookUp looks each item of live up among those of applied.
func (x *matcher) lookUp(live any, n int, applied []any) bool {
	if !x.hashItems(applied) {
		return false
	}
	x.liveAt = slices.Repeat([]int32{-1}, len(applied))
	for j := range n {
		item := itemOf(live, j)
		h, ok := x.hash(item)
		if !ok {
			return false
		}
		i := x.find(item, h, applied)
		if i < 0 {
			continue
		}
		if x.liveAt[i] >= 0 {
			return false
		}
		x.liveAt[i] = int32(j)
	}
	return true
}

// order returns the order of the merged list (spec rule 3.7): for each of its items the
// position in live, or -1-i for the item of applied at i. With one cursor in each list:
//
//	live     a b c d        applied  d x b
//	shared   d b            the applied items that live has, in applied's order
//	merged   a c d x b
//
// An item of live alone is taken when the live cursor meets it; a shared item is taken
// in its turn in applied's order; the live cursor passes over shared items whose turn it
// is not. Items of applied alone stay behind the item that they follow in applied. Each
// turn of the loop moves one of the cursors, so that it costs O(n + len(applied)).
func (x *matcher) order(n, applied int) []int {
	appliedAt := slices.Repeat([]int{-1}, n)
	var shared []int
	for i := range applied {
		if j := x.position(i); j >= 0 {
			appliedAt[j] = i
			shared = append(shared, i)
		}
	}
	out := make([]int, 0, max(n, applied))
	taken := make([]bool, applied)
	i, j := 0, 0
	for i < applied || j < n {
		if j < n && i < applied {
			if appliedAt[j] == i {
				taken[i] = true
				out = append(out, -1-i)
				if len(shared) > 0 {
					shared = shared[1:]
				}
				i++
				j++
				continue
			}
			if appliedAt[j] >= 0 && len(shared) > 0 && shared[0] != appliedAt[j] {
				j++
				continue
			}
		}
		if j < n {
			if appliedAt[j] < 0 {
				out = append(out, j)
				j++
				continue
			}
			if taken[appliedAt[j]] {
				j++
			}
		}
		if i < applied {
			taken[i] = true
			out = append(out, -1-i)
			if len(shared) > 0 && shared[0] == i {
				shared = shared[1:]
			}
			i++
		}
	}
	return out
}

// itemTable is a hash table with open addressing, of positions in a list.
//
//	len(slots) is a power of two, and more than twice the number of items
//	slots[i] == 0    nothing is there
//	slots[i] == j+1  the item at j, whose hash is hashes[j]
type itemTable struct {
	slots  []int32
	hashes []uint64
}

// itemSeed makes the hashes of items unpredictable, so that nobody can write items
// that collide.
var itemSeed = maphash.MakeSeed()

// hashItems builds the table of the items of a list. It is false where an item is in it
// twice, or can't be hashed.
func (x *matcher) hashItems(list []any) bool {
	if x.isTable {
		return true
	}
	size := 1 << bits.Len(uint(2*len(list)))
	x.table = itemTable{slots: make([]int32, size), hashes: make([]uint64, len(list))}
	for j, item := range list {
		h, ok := x.hash(item)
		if !ok {
			return false
		}
		x.table.hashes[j] = h
		slot := int(h) & (size - 1)
		for x.table.slots[slot] != 0 {
			other := int(x.table.slots[slot] - 1)
			if x.table.hashes[other] == h {
				return false // the same, or so unlikely that it may be taken for it
			}
			slot = (slot + 1) & (size - 1)
		}
		x.table.slots[slot] = int32(j + 1)
	}
	x.isTable = true
	return true
}

// find returns the position of an item, whose hash is h, in the list of the table; -1
// if it is not there.
func (x *matcher) find(item any, h uint64, list []any) int {
	mask := len(x.table.slots) - 1
	for slot := int(h) & mask; x.table.slots[slot] != 0; slot = (slot + 1) & mask {
		j := int(x.table.slots[slot] - 1)
		if x.table.hashes[j] == h && x.list.sameItem(item, list[j], x.keys) {
			return j
		}
	}
	return -1
}

// hash returns a hash of what identifies an item: equal for items that sameItem
// says are the same.
func (x *matcher) hash(item any) (h uint64, ok bool) {
	if x.list.Kind == SetList {
		return hashScalar(item)
	}
	if !isLiveMap(item) {
		return 0, false
	}
	found := false
	for _, key := range x.keys {
		v, has := entryOf(item, key)
		if v = x.list.orDefault(v, has, key); v == nil && !has {
			h = bits.RotateLeft64(h, 29) // the key is without the field
			continue
		}
		k, ok := hashScalar(v)
		if !ok {
			return 0, false
		}
		h = bits.RotateLeft64(h, 29) ^ k
		h *= 0x9E3779B97F4A7C15 // spreads what was there before over all bits
		found = true
	}
	return h ^ h>>32, found
}

// hashScalar hashes what may be in a key or a set, but for lists, maps and nulls, which
// are left to the twins: equal numbers hash alike, whatever their Go types.
func hashScalar(v any) (uint64, bool) {
	switch x := v.(type) {
	case string:
		return maphash.String(itemSeed, x), true
	case int64:
		return maphash.Comparable(itemSeed, float64(x)), true
	case bool:
		return maphash.Comparable(itemSeed, x), true
	}
	if _, f, _, ok := number(v); ok && f == f {
		return maphash.Comparable(itemSeed, f+0), true // + 0: there is one zero
	}
	return 0, false
}

// isSelectable reports whether an item has a key, or a value, that a matcher may
// compare.
func (l *List) isSelectable(item any, keys []string) bool {
	if l.Kind == SetList {
		_, ok := hashScalar(item)
		return ok
	}
	if !isLiveMap(item) {
		return false
	}
	found := false
	for _, key := range keys {
		v, has := entryOf(item, key)
		if v = l.orDefault(v, has, key); v == nil && !has {
			continue
		}
		if _, ok := hashScalar(v); !ok {
			return false
		}
		found = true
	}
	return found
}

// hasItem reports whether a list has an item.
func (l *List) hasItem(list []any, item any, keys []string) bool {
	return slices.ContainsFunc(list, func(other any) bool { return l.sameItem(other, item, keys) })
}

// sameItem reports whether two items have the same element: the same value, or the
// same key, where a field that an item lacks counts as its default.
func (l *List) sameItem(a, b any, keys []string) bool {
	if l.Kind == SetList {
		return sameKey(a, b)
	}
	if !isLiveMap(a) || !isLiveMap(b) {
		return false
	}
	for _, key := range keys {
		xv, xok := entryOf(a, key)
		yv, yok := entryOf(b, key)
		if xok != yok {
			if xv, yv = l.orDefault(xv, xok, key), l.orDefault(yv, yok, key); xv == nil {
				return false
			}
		}
		if !sameKey(xv, yv) {
			return false
		}
	}
	return true
}

// sameKey reports whether two values make the same element: as for all elements,
// numbers are the same whatever their Go types.
func sameKey(a, b any) bool {
	if same(a, b) {
		return true
	}
	switch x := a.(type) {
	case nil, string, bool:
		return false
	case int64:
		if _, ok := b.(int64); ok {
			return false
		}
	case map[string]any, []any:
		return Equal(x, b)
	}
	return kindOf(a) == isNumber && kindOf(b) == isNumber && fieldpath.Value(a).Equal(fieldpath.Value(b))
}

// orDefault returns the value of a key field, or its default where an item has none.
func (l *List) orDefault(v any, has bool, key string) any {
	if has {
		return v
	}
	return l.keyDefault(key)
}
