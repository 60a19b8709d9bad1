package typed

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Merged is an intent that was merged into a live value.
type Merged struct {
	// Value is the merged value. If Changed is false, it is the live value itself, the same value in memory.
	Value   any
	Changed bool
	// FieldsV1 is the field set of the intent: its [Type.FieldSet] without the paths that the [Rules] exclude.
	FieldsV1 *metav1.FieldsV1
}

// String reports whether the value changed. It does not print values.
func (m Merged) String() string { return fmt.Sprintf("changed: %t", m.Changed) }

// FieldSet decodes FieldsV1, the fields that the intent owns.
func (m Merged) FieldSet() *fieldpath.Set {
	set, _ := fieldpath.Parse(fieldsv1.Bytes(m.FieldsV1))
	return set
}

// Merge merges applied, an intent, into live (spec rules 3.1, 3.2 and 3.3). It removes nothing from live, sets the
// leaves of applied, and merges containers by their topology. A set or keyed list keeps the order of live if the items
// that are in both values have the same order in both; otherwise it gets the order of applied. For example, with ports
// keyed by port:
//
//	live       image: a  ports: [{port: 80, name: x}, {port: 90}]  args: [q]
//	applied    image: b  ports: [{port: 90}, {port: 80}]
//	Value      image: b  ports: [{port: 90}, {port: 80, name: x}]  args: [q]
//	FieldSet() .image  .ports[port=80]  .ports[port=80].port  .ports[port=90]  .ports[port=90].port
//
// live must be valid, but may have duplicates; an applied item replaces all its duplicates. For a new object, live is
// nil. The error has the violations that [Type.Validate] finds in applied under the rules. It does not have violations
// in atomic lists and maps that equal live's, because these were accepted before, and the write does not change them
// (spec rule 1.3).
//
// The result shares memory with both values. Merge costs O(n log n) for n map entries and items of applied, plus the
// length of each list of live in which applied has items.
func (t *Type) Merge(live, applied any, rules Rules) (Merged, error) {
	return (*Semantics)(nil).Merge(t, live, applied, rules)
}

// Merge is [Type.Merge] for values of type t with the equality of s: where live and applied are equal, the result has
// live's value.
func (s *Semantics) Merge(t *Type, live, applied any, rules Rules) (Merged, error) {
	if t == nil {
		return Merged{}, errors.New("expected a type, got nil")
	}
	if live == nil {
		live = missing
	}
	m := merger{newValidator(rules)}
	defer m.release()
	m.semantics = s
	out, _ := m.merge(t, live, applied)
	if m.invalid {
		m.again()
		m.merge(t, live, applied)
		return Merged{}, m.err()
	}
	if !out.changed { // then there is a live value
		out.value = live
	}
	return Merged{Value: out.value, Changed: out.changed, FieldsV1: m.fields.FieldsV1()}, nil
}

// merger merges the places where both values have content. Where live has no content, the [validator] validates the
// intent and finds the fields that the intent owns.
type merger struct{ *validator }

// result is the merged value of one place. If changed is false, the merged value is live's, and value is meaningless.
type result struct {
	value   any
	changed bool
}

// merge merges one place; live may be missing. leaf reports whether the intent owns the place as a whole. merge writes
// the paths that the intent owns below the place to m.fields.
func (m *merger) merge(t *Type, live, applied any) (out result, leaf bool) {
	if isMissing(live) {
		return result{applied, true}, m.value(t, applied)
	}
	shape := t.shapeOf(applied).first()
	if t.isLeafShape(shape) {
		return m.mergeLeaf(t, shape, live, applied), true
	}
	switch shape {
	case mapShape:
		l, r := asMap(live), asMap(applied)
		if r != nil && (len(l) > 0 || len(r) > 0 && m.semantics != nil) {
			return m.mergeEntries(t.Map, l, r), false
		}
	case listShape:
		l, r := asList(live), asList(applied)
		if len(l) > 0 && len(r) > 0 && len(r) <= limits.MaxItems {
			return m.mergeItems(t.List, l, r), false
		}
	}
	// At most one value has content, or the intent has too many items, which is an error. The intent's value replaces a
	// null. An empty value of the intent does not remove live's content.
	m.value(t, applied)
	keepsLive := !hasContent(applied, shape) && (hasContent(live, shape) || m.semantics.Equal(t, live, applied))
	return result{applied, !keepsLive}, false
}

// hasContent reports whether v is a map or list of shape s that is not empty.
func hasContent(v any, s shape) bool {
	return s == mapShape && len(asMap(v)) > 0 || s == listShape && len(asList(v)) > 0
}

// mergeLeaf returns applied, or live if both are equal. It does not validate an atomic list or map that equals live's.
func (m *merger) mergeLeaf(t *Type, s shape, live, applied any) result {
	isEqual := m.equal(t, live, applied)
	if s == scalarShape || applied == nil || !isEqual {
		m.value(t, applied)
	}
	return result{applied, !isEqual}
}

// equal is [Semantics.Equal], and counts the values that it visits.
func (m *merger) equal(t *Type, a, b any) bool {
	left := limits.MaxValues - m.values
	if equal(a, b, 0, &left) {
		m.values = limits.MaxValues - left
		return true
	}
	return m.semantics != nil && m.semantics.sameMeaning(t, a, b, 0)
}

func (m *merger) mergeEntries(t *Map, live, applied map[string]any) result {
	if !m.within() {
		return result{}
	}
	out := live
	m.eachEntry(t, applied, func(f namedField, declared bool, r any) {
		l, has := live[f.name]
		if !has {
			l = missing
		}
		m.enter(fieldpath.FieldElement(f.name), f.head, !declared)
		merged, leaf := m.merge(f.typ, l, r)
		m.leave(leaf || !declared || isEmptyValue(r))
		if !merged.changed || m.semantics.bothAbsent(t, f.name, l, r, m.depth) {
			return
		}
		out = withEntry(out, live, f.name, merged.value)
	})
	return result{out, !trees.SameMap(out, live)}
}

// mergeItems merges two lists that both have items.
func (m *merger) mergeItems(l *List, live, applied []any) result {
	if !m.within() {
		return result{}
	}
	x := listMerge{
		merger: m, list: l, live: live, applied: applied,
		elems: make([]fieldpath.Element, len(applied)),
	}
	level := m.fields.Level()
	isValid := true
	for i, item := range applied {
		var ok bool
		x.elems[i], ok = m.element(l, i, item)
		isValid = isValid && ok
	}
	switch {
	case !isValid: // the items that have elements may be invalid, too
		for i, e := range x.elems {
			if e != (fieldpath.Element{}) {
				x.mergeItem(i, missing)
			}
		}
	case l.sameItems(live, applied):
		x.inPlace()
	default:
		x.byElements()
	}
	m.distinct(level)
	return result{x.out, x.changed}
}

// listMerge merges an intent's items into a list by their elements (spec rule 3.7).
type listMerge struct {
	*merger
	list          *List
	live, applied []any
	elems         []fieldpath.Element // of applied

	out     []any
	changed bool // out differs from live
}

// mergeItem merges the item at index i of applied into live's item.
func (x *listMerge) mergeItem(i int, live any) result {
	x.enter(x.elems[i], "", true)
	merged, _ := x.merge(x.list.elem, live, x.applied[i])
	x.leave(true)
	return merged
}

// inPlace merges two lists that have the same items in the same order, which is the common case.
func (x *listMerge) inPlace() {
	out := withItems(x.live, func(i int, live any) any {
		if merged := x.mergeItem(i, live); merged.changed {
			return merged.value
		}
		return live
	})
	if !sameList(out, x.live) {
		x.out, x.changed = out, true
	}
}

// byElements merges any two lists. It has one cursor in each list:
//
//	live     a b c d        applied  d x b
//	shared   d b            the applied items that live has and that are not in merged yet, in applied's order
//	merged   a c d x b
//
// An item that only live has is added when the cursor in live reaches it. Shared items are added in applied's order;
// the cursor in live skips a shared item whose turn has not come. An item that only applied has is added directly after
// its predecessor in applied. Each step moves a cursor, so the cost is O(len(live) + len(applied)). Items of live that
// can't be selected are omitted, as in upstream.
func (x *listMerge) byElements() {
	x.out = make([]any, 0, max(len(x.live), len(x.applied)))
	m := interleaving{listMerge: x, index: x.list.indexOf(x.live), isMerged: make(map[string]bool, len(x.elems))}
	shared := m.shared // a local variable, because appending to m.shared would move m to the heap
	for _, e := range x.elems {
		m.isMerged[e.Text()] = false
		if m.index.has(e) {
			shared = append(shared, e)
		}
	}
	m.shared = shared
	for m.nextLive < len(m.index.elems) || m.nextApplied < len(m.elems) {
		isApplied, isMerged := m.stateOfLive()
		switch {
		case m.isNextInBoth():
			m.addApplied()
			m.nextLive++
		case isApplied && m.isOutOfTurn():
			m.nextLive++
		case m.nextLive < len(m.index.elems) && !isApplied:
			m.addLive()
		default:
			if isMerged {
				m.nextLive++
			}
			m.addApplied()
		}
	}
	x.changed = !slices.EqualFunc(x.out, x.live, same)
}

// interleaving is a merge of two lists by their elements. out has the items merged so far.
//
// Invariant: shared has the elements of elems[nextApplied:] that live has, in the order of elems.
type interleaving struct {
	*listMerge
	index    index // of live
	shared   []fieldpath.Element
	isMerged map[string]bool // for the text of each of elems: whether its item is in out

	nextLive    int // in index.elems
	nextApplied int // in elems
}

// stateOfLive reports whether applied has live's next item, and whether out has it. Both are false at the end of live.
func (m *interleaving) stateOfLive() (isApplied, isMerged bool) {
	if m.nextLive < len(m.index.elems) {
		isMerged, isApplied = m.isMerged[m.index.elems[m.nextLive].Text()]
	}
	return isApplied, isMerged
}

// isNextInBoth reports whether both cursors are at the same item.
func (m *interleaving) isNextInBoth() bool {
	return m.nextLive < len(m.index.elems) && m.nextApplied < len(m.elems) &&
		m.index.elems[m.nextLive].Equal(m.elems[m.nextApplied])
}

// isOutOfTurn reports whether another shared item must be added before live's next item.
func (m *interleaving) isOutOfTurn() bool {
	return len(m.shared) > 0 && !m.shared[0].Equal(m.index.elems[m.nextLive])
}

// addLive adds live's next item, which applied does not have. It skips an item that can't be selected.
func (m *interleaving) addLive() {
	if m.index.elems[m.nextLive] != (fieldpath.Element{}) {
		m.out = append(m.out, m.live[m.nextLive])
	}
	m.nextLive++
}

// addApplied adds applied's next item, if any, merged into live's item. The merged item replaces duplicates.
func (m *interleaving) addApplied() {
	if m.nextApplied == len(m.elems) {
		return
	}
	e := m.elems[m.nextApplied]
	live := m.index.only(e)
	merged := m.mergeItem(m.nextApplied, live)
	if !merged.changed {
		merged.value = live
	}
	m.out = append(m.out, merged.value)
	m.isMerged[e.Text()] = true
	m.nextApplied++
	if len(m.shared) > 0 && m.shared[0].Equal(e) {
		m.shared = m.shared[1:]
	}
}
