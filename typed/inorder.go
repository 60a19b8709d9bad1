package typed

import "slices"

// Most pairs of lists have the same items in the same order: an update changes one item or none, an intent lists the
// items in live's order. The functions of this file handle that case, and distinct items in any order, without
// computing elements for equal items. They return false, for the general case, if an item may be duplicated.

// maxDuplicateSearch is the number of items whose duplicates are searched for one by one. For more, all items are
// hashed.
const maxDuplicateSearch = 8

// maxOrdered bounds the nesting of lists that are compared in order. Each level compares differing items again, so a
// value that is all nesting would cost its depth times its size.
const maxOrdered = 64

// compareInOrder compares two lists whose items have the same elements in the same order. ok is false for other
// lists, and for nesting that would cost too much.
func (c *comparer) compareInOrder(l *List, old, now []any, depth int) (d difference, ok bool) {
	if len(old) != len(now) || depth > maxOrdered {
		return d, false
	}
	f := l.matcher()
	var space [maxDuplicateSearch]int
	differing := space[:0]
	for i := range old {
		if same(old[i], now[i]) || equal(old[i], now[i], depth+1, &c.left) {
			continue
		}
		if !l.sameItem(old[i], now[i], f.keys) {
			return d, false
		}
		differing = append(differing, i)
	}
	if len(differing) == 0 {
		return d, true
	}
	// Both lists have the same elements at the same positions, so an item is duplicated in both or in neither.
	if len(differing) > maxDuplicateSearch && !f.hashItems(now) {
		return d, false
	}
	var out differences
	for _, i := range differing {
		if !f.isTable && l.hasDuplicate(now, i, f.keys) {
			return d, false
		}
		e, err := l.element(now[i])
		if err != nil {
			return d, false
		}
		out.add(e, c.compare(l.Elem, old[i], now[i], depth+1))
	}
	return out.result(), true
}

// compareHashed compares two lists of distinct items in any order. ok is false if an item is duplicated or can't be
// hashed.
func (c *comparer) compareHashed(l *List, old, now []any, depth int) (d difference, ok bool) {
	before, after := l.matcher(), l.matcher()
	if depth > maxOrdered || !before.hashItems(old) || !after.hashItems(now) {
		return d, false
	}
	var out differences
	differ := func(item, was, is any) bool {
		e, err := l.element(item)
		if err == nil {
			out.add(e, c.compare(l.Elem, was, is, depth+1))
		}
		return err == nil
	}
	met := make([]bool, len(old))
	for i, item := range now {
		j := before.find(item, after.table.hashes[i], old)
		was := missing
		if j >= 0 {
			met[j] = true
			if was = old[j]; same(was, item) || equal(was, item, depth+1, &c.left) {
				continue
			}
		}
		if !differ(item, was, item) {
			return d, false
		}
	}
	for j, item := range old {
		if !met[j] && !differ(item, item, missing) {
			return d, false
		}
	}
	return out.result(), true
}

// hasDuplicate reports whether list has another item that is the same as the one at position i.
func (l *List) hasDuplicate(list []any, i int, keys []string) bool {
	for j := range list {
		if j != i && l.sameItem(list[j], list[i], keys) {
			return true
		}
	}
	return false
}

// mergeInOrder merges an intent whose items are distinct and are all in live, in the same order. ok is false for
// other lists.
func (m *merger) mergeInOrder(t *List, live, applied []any) (out []any, unchanged, ok bool) {
	f := t.matcher()
	if !f.hashItems(applied) || !f.match(live, len(live), applied) || !f.sorted {
		return nil, false, false
	}
	for i, item := range applied {
		e, err := t.element(item)
		if err != nil {
			return nil, false, false
		}
		at := f.position(i)
		m.push(e)
		merged, kept := m.merge(t.Elem, live[at], item)
		m.pop()
		if kept {
			continue
		}
		if out == nil {
			out = slices.Clone(live)
		}
		out[at] = merged
	}
	return out, out == nil, true
}
