package typed

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// matcher pairs the items of two lists, live and applied, that have the same key or value. It never computes an
// element, whose canonical text would cost more than all the rest. It compares items by their key fields, and looks
// them up by a hash of these if comparing would take too long. There are three ways, from the most common case to the
// least:
//
//	the same items in the same order   one comparison for each item
//	few items of applied               each is searched for in live
//	others                             each item of live is looked up in a hash table of applied
//
// Each costs O(len(live) + len(applied)). It does not pair lists that have a duplicate, or an item that can't be
// hashed: the plain operations handle those, by elements ([List.indexOf]).
//
//	liveAt == nil       applied[i] is live[i], for all i
//	liveAt[i] == j ≥ 0  applied[i] is live[j]
//	liveAt[i] == -1     live has no such item
//
// For example, live [a b c d] and applied [d x b] have liveAt [3 -1 1].
type matcher struct {
	list *List
	keys []string // of list, sorted

	liveAt  []int32
	sorted  bool // liveAt has no -1 and ascends
	isTable bool // table has the items of applied, which are distinct
	table   itemTable
}

func (l *List) matcher() matcher { return matcher{list: l, keys: l.sortedKeys()} }

// sortedKeys returns the key fields of l's items in the order of an element.
func (l *List) sortedKeys() []string {
	if slices.IsSorted(l.Keys) {
		return l.Keys
	}
	return slices.Sorted(slices.Values(l.Keys))
}

// maxSearched is the number of items that are searched for one by one.
const maxSearched = 8

// position returns the position in live of the item at i of applied, or -1.
func (x *matcher) position(i int) int {
	if x.liveAt == nil {
		return i
	}
	return int(x.liveAt[i])
}

// match pairs the items of applied with the n items of live. It returns false for lists that it can't pair. If the
// lists have the same items in the same order, it does not notice duplicates.
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

// sameItems reports whether two lists of one length have the same items in the same order.
func (x *matcher) sameItems(live any, applied []any) bool {
	for i := range applied {
		if !x.list.sameItem(itemOf(live, i), applied[i], x.keys) {
			return false
		}
	}
	return true
}

// search pairs a few items, one by one. The key of each item is read once.
func (x *matcher) search(live any, n int, applied []any) bool {
	width := max(1, len(x.keys))
	var space [2 * (maxSearched + 1)]any // for lists of two key fields at most
	keys := space[:]
	if needed := width * (len(applied) + 1); needed > len(keys) {
		keys = make([]any, needed)
	}
	find := func(key []any, n int) int {
		for i := range n {
			if sameKeys(key, keys[i*width:(i+1)*width]) {
				return i
			}
		}
		return -1
	}
	x.liveAt = make([]int32, len(applied))
	for i, a := range applied {
		key := keys[i*width : (i+1)*width]
		if !x.readKey(a, key) || find(key, i) >= 0 {
			return false
		}
		x.liveAt[i] = -1
	}
	key := keys[len(applied)*width:][:width]
	for j := range n {
		if !x.readKey(itemOf(live, j), key) {
			return false
		}
		if i := find(key, len(applied)); i >= 0 {
			if x.liveAt[i] >= 0 {
				return false
			}
			x.liveAt[i] = int32(j)
		}
	}
	return true
}

// readKey writes the values of an item's key fields to key: the default, or nil, of one that it lacks; of a set, the
// item. It returns false unless the matcher can compare the item, by a key or value that can be hashed.
func (x *matcher) readKey(item any, key []any) bool {
	if x.list.Kind == SetList {
		key[0] = item
		return isHashable(item)
	}
	if !isLiveMap(item) {
		return false
	}
	found := false
	for i, name := range x.keys {
		v, has := entryOf(item, name)
		v = x.list.orDefault(v, has, name)
		key[i] = v
		if v == nil && !has {
			continue
		}
		if !isHashable(v) {
			return false
		}
		found = true
	}
	return found
}

// sameKeys reports whether two items are the same by their keys as readKey reads them. It is sameItem for such items.
func sameKeys(a, b []any) bool {
	for i := range a {
		if !sameKey(a[i], b[i]) {
			return false
		}
	}
	return true
}

// lookUp pairs many items, with a hash table of applied.
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

// order returns the order of the merged list (spec rule 3.7): for each item its position in live, or -1-i for the
// item at i of applied. It has one cursor in each list:
//
//	live     a b c d        applied  d x b
//	shared   d b            the applied items that live has and that are not taken, in applied's order
//	merged   a c d x b
//
// An item of live only is taken when the cursor in live reaches it. Shared items are taken in applied's order; the
// cursor in live skips those that are not next. An item of applied only follows the item before it in applied. Each
// iteration moves a cursor, so the cost is O(n + len(applied)).
//
// A shared item is taken where the cursor in live meets it, or at the end of live if it was skipped. So what the cursor
// meets is not taken yet, and shared has it.
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
	i, j := 0, 0
	for i < applied || j < n {
		if j < n {
			switch at := appliedAt[j]; {
			case at < 0:
				out = append(out, j)
				j++
				continue
			case at == i:
				out, shared = append(out, -1-i), shared[1:]
				i++
				j++
				continue
			case at != shared[0]:
				j++
				continue
			}
		}
		// Live does not have this item, or has no more items.
		out = append(out, -1-i)
		i++
	}
	return out
}

// itemTable is a hash table of positions in a list, with open addressing.
//
//	len(slots) is a power of two, and more than twice the number of items
//	slots[i] == 0    the slot is free
//	slots[i] == j+1  the item at j, whose hash is hashes[j]
type itemTable struct {
	slots  []int32
	hashes []uint64
}

// itemSeed is random, so nobody can prepare items whose hashes collide.
var itemSeed = maphash.MakeSeed()

// hashItems builds the table of a list. It returns false if an item is duplicated or can't be hashed.
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
				return false // the same item, or a collision so rare that the slow way may handle it
			}
			slot = (slot + 1) & (size - 1)
		}
		x.table.slots[slot] = int32(j + 1)
	}
	x.isTable = true
	return true
}

// find returns the position of an item with hash h in the list of the table, or -1.
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

// hash returns a hash of an item's key or value. Items that are the same by sameItem have equal hashes.
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

// hashScalar hashes a value of a key or set. It is false for lists, maps and nulls, which the plain operations
// handle. Equal numbers have equal hashes, whatever their Go types.
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
		return maphash.Comparable(itemSeed, f+0), true // +0 makes -0 and 0 the same
	}
	return 0, false
}

// isHashable reports whether hashScalar hashes a value.
func isHashable(v any) bool {
	switch v.(type) {
	case string, int64, bool:
		return true
	}
	_, ok := hashScalar(v)
	return ok
}

// sameItem reports whether two items have the same element: the same value, or the same key. A key field that an item
// lacks counts as its default. a may be a live item, b is a plain tree.
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

// sameKey reports whether two values make the same element. Numbers are the same whatever their Go types.
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

// orDefault returns the value of a key field, or its default if the item has none.
func (l *List) orDefault(v any, has bool, key string) any {
	if has {
		return v
	}
	return l.keyDefault(key)
}
