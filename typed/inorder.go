package typed

import "slices"

// Most lists meet in the same order: an update changes an item or none, an
// intent names the items as live has them. The functions of this file deal with
// that case without computing elements for items that are equal anyway; they
// give up, and leave it to the general case, whenever an item may stand twice.

// sortedKeys returns the key fields of l's items in the order in which they stand
// in an element.
func (l *List) sortedKeys() []string {
	if slices.IsSorted(l.Keys) {
		return l.Keys
	}
	return slices.Sorted(slices.Values(l.Keys))
}

// maxDiffering bounds how many items compareInOrder looks for twins of: each
// costs a walk through the list.
const maxDiffering = 8

// maxOrdered bounds how deep lists are compared in order. Each level of lists
// walks the items that differ once more to see that they do, which in a value
// that is all nesting would cost its depth times its size.
const maxOrdered = 64

// compareInOrder compares two lists whose items have the same elements in the
// same order. ok is false when they have not, or when that takes too long to see.
func (s *Semantics) compareInOrder(l *List, old, now []any, depth int) (d difference, ok bool) {
	if len(old) != len(now) || depth > maxOrdered {
		return d, false
	}
	keys := l.sortedKeys()
	var differing [maxDiffering]int
	n := 0
	for i := range old {
		if same(old[i], now[i]) {
			continue
		}
		if !l.sameItem(old[i], now[i], keys) {
			return d, false
		}
		if Equal(old[i], now[i]) {
			continue
		}
		if n == maxDiffering {
			return d, false
		}
		differing[n] = i
		n++
	}
	var out differences
	for _, i := range differing[:n] {
		// The same elements stand at the same places in both, so that an item
		// stands twice in both or in neither.
		if l.twins(now, i, keys) {
			return d, false
		}
		e, err := l.element(now[i])
		if err != nil {
			return d, false
		}
		out.add(e, s.compare(l.Elem, old[i], now[i], depth+1))
	}
	return out.result(), true
}

// twins reports whether the item at position i stands elsewhere in list too.
func (l *List) twins(list []any, i int, keys []string) bool {
	for j := range list {
		if j != i && l.sameItem(list[j], list[i], keys) {
			return true
		}
	}
	return false
}

// mergeInOrder merges a few items of an intent that stand in live in the same
// order, each once. ok is false when they do not.
func (m *merger) mergeInOrder(t *List, live, applied []any) (out []any, unchanged, ok bool) {
	if len(applied) > maxFollowed {
		return nil, false, false
	}
	keys := t.sortedKeys()
	for i := range applied {
		if t.twins(applied, i, keys) {
			return nil, false, false
		}
	}
	positions, ok := t.follow(live, applied, keys)
	if !ok {
		return nil, false, false
	}
	for i, item := range applied {
		at := i
		if positions != nil {
			at = positions[i]
		}
		e, err := t.element(item)
		if err != nil {
			return nil, false, false
		}
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
