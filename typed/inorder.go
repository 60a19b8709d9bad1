package typed

import "slices"

// Most lists meet in the same order: an update changes an item or none, an
// intent names the items as live has them. The functions of this file deal with
// that case without computing elements for items that are equal anyway; they
// give up, and leave it to the general case, whenever an item may stand twice.

// maxTwins is how many items are looked for one by one in their list, to see that
// they do not stand twice. Where there are more, all items are hashed.
const maxTwins = 8

// maxOrdered bounds how deep lists are compared in order. Each level of lists
// walks the items that differ once more to see that they do, which in a value
// that is all nesting would cost its depth times its size.
const maxOrdered = 64

// compareInOrder compares two lists whose items have the same elements in the
// same order. ok is false when they have not, or when that takes too long to see.
func (c *comparer) compareInOrder(l *List, old, now []any, depth int) (d difference, ok bool) {
	if len(old) != len(now) || depth > maxOrdered {
		return d, false
	}
	f := l.matcher()
	var space [maxTwins]int
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
	// The same elements stand at the same places in both, so that an item stands
	// twice in both or in neither.
	if len(differing) > maxTwins && !f.hashItems(now) {
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

// compareHashed compares two lists that hold each item once, in any order. ok is
// false when one holds an item twice, or one that can't be hashed.
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

// twins reports whether the item at position i stands elsewhere in list too.
func (l *List) hasDuplicate(list []any, i int, keys []string) bool {
	for j := range list {
		if j != i && l.sameItem(list[j], list[i], keys) {
			return true
		}
	}
	return false
}

// mergeInOrder merges items of an intent that stand in live in the same order,
// each once. ok is false when they do not.
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
