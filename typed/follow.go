package typed

import (
	"hash/maphash"
	"math/bits"

	"github.com/tenure-ssa/tenure/fieldpath"
)

// follower finds the items of one list in another, where they have to stand in
// the same order. It never computes an element: items are compared by their key
// fields, and where that would cost too much, by a hash of them.
type follower struct {
	list *List
	keys []string // of list, sorted

	positions []int32 // in live, of the items of applied; nil for 0, 1, 2 …
	distinct  bool    // no item of applied is known to stand twice
	table     itemTable
}

// maxFollowed is how many items of an intent are looked for one by one in a
// longer list.
const maxFollowed = 8

// at returns the position in live of the item of applied at i.
func (f *follower) at(i int) int {
	if f.positions == nil {
		return i
	}
	return int(f.positions[i])
}

// follow finds the items of applied in live, a list of n. It is false when applied
// has an item that live has not, or in another order, or that live has twice
// although it has others between.
func (f *follower) follow(live any, n int, applied []any) bool {
	switch {
	case n < len(applied):
		return false
	case n == len(applied):
		for i := range n {
			if !f.list.sameItem(itemOf(live, i), applied[i], f.keys) {
				return false
			}
		}
		return true
	case len(applied) <= maxFollowed:
		return f.search(live, n, applied)
	}
	// Each item of live is looked up among those of applied.
	if !f.checkDistinct(applied) {
		return false
	}
	f.positions = make([]int32, 0, len(applied))
	for i := range n {
		item := itemOf(live, i)
		h, ok := f.hash(item)
		if !ok {
			return false
		}
		if j := f.find(item, h, applied); j >= 0 {
			if j != len(f.positions) {
				return false
			}
			f.positions = append(f.positions, int32(i))
		}
	}
	return len(f.positions) == len(applied)
}

// permute finds the items of applied in live, a list of as many, in any order.
func (f *follower) permute(live, applied []any) bool {
	if !f.checkDistinct(applied) {
		return false
	}
	f.positions = make([]int32, len(applied))
	met := make([]bool, len(applied))
	for i, item := range live {
		h, ok := f.hash(item)
		if !ok {
			return false
		}
		j := f.find(item, h, applied)
		if j < 0 || met[j] {
			return false
		}
		met[j] = true
		f.positions[j] = int32(i)
	}
	return true
}

// search looks for a few items one by one.
func (f *follower) search(live any, n int, applied []any) bool {
	f.positions = make([]int32, len(applied))
	for i, a := range applied {
		found := -1
		for j := range n {
			if f.list.sameItem(itemOf(live, j), a, f.keys) {
				if found >= 0 {
					return false
				}
				found = j
			}
		}
		if found < 0 || i > 0 && found <= int(f.positions[i-1]) {
			return false
		}
		f.positions[i] = int32(found)
	}
	return true
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

// checkDistinct reports whether no item of applied stands twice, and builds the
// table of them. It is false as well for items that it can't hash.
func (f *follower) checkDistinct(applied []any) bool {
	if f.distinct {
		return true
	}
	size := 1 << bits.Len(uint(2*len(applied)))
	f.table = itemTable{slots: make([]int32, size), hashes: make([]uint64, len(applied))}
	for j, a := range applied {
		h, ok := f.hash(a)
		if !ok {
			return false
		}
		f.table.hashes[j] = h
		slot := int(h) & (size - 1)
		for f.table.slots[slot] != 0 {
			other := int(f.table.slots[slot] - 1)
			if f.table.hashes[other] == h {
				return false // the same, or so unlikely that it may be taken for it
			}
			slot = (slot + 1) & (size - 1)
		}
		f.table.slots[slot] = int32(j + 1)
	}
	f.distinct = true
	return true
}

// find returns the position of an item, whose hash is h, among those of applied; -1
// if it is not there.
func (f *follower) find(item any, h uint64, applied []any) int {
	mask := len(f.table.slots) - 1
	for slot := int(h) & mask; f.table.slots[slot] != 0; slot = (slot + 1) & mask {
		j := int(f.table.slots[slot] - 1)
		if f.table.hashes[j] == h && f.list.sameItem(item, applied[j], f.keys) {
			return j
		}
	}
	return -1
}

// hash returns a hash of what identifies an item: equal for items that sameItem
// says are the same.
func (f *follower) hash(item any) (h uint64, ok bool) {
	if f.list.Kind == SetList {
		return hashScalar(item)
	}
	if !isLiveMap(item) {
		return 0, false
	}
	for _, key := range f.keys {
		v, there := entryOf(item, key)
		if !there {
			v = f.list.keyDefault(key)
		}
		k, ok := hashScalar(v)
		if !ok {
			return 0, false
		}
		h = bits.RotateLeft64(h, 29) ^ k
		h *= 0x9E3779B97F4A7C15 // spreads what was there before over all bits
	}
	return h ^ h>>32, true
}

func hashScalar(v any) (uint64, bool) {
	switch x := v.(type) {
	case string:
		return maphash.String(itemSeed, x), true
	case int64:
		return maphash.Comparable(itemSeed, x), true
	case bool:
		return maphash.Comparable(itemSeed, x), true
	}
	return 0, false
}

// sameItem reports whether two items have the same element: the same value, or the
// same key, for which a default stands where one has no key field.
func (l *List) sameItem(a, b any, keys []string) bool {
	if l.Kind == SetList {
		return sameKey(a, b)
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

func (l *List) orDefault(v any, there bool, key string) any {
	if there {
		return v
	}
	return l.keyDefault(key)
}
