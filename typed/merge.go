package typed

import (
	"maps"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Merge returns live with applied merged into it (spec rules 3.1, 3.2 and 3.3). It removes nothing from live, takes the
// leaves of applied, and merges containers by their topology. A set or keyed list keeps the order of live if applied
// has the shared items in that order, and has the order of applied otherwise. For example, with ports keyed by port:
//
//	live       image: a  ports: [{port: 80, name: x}, {port: 90}]  args: [q]
//	applied    image: b  ports: [{port: 90}, {port: 80}]
//	merged     image: b  ports: [{port: 90}, {port: 80, name: x}]  args: [q]
//
// Both values must be valid. applied must have no duplicates; live may, and an applied item replaces all its
// duplicates. The result shares memory with both. It is live itself, the same map in memory, if applied changes
// nothing. It costs O(size of applied), plus the length of each list of live that applied has items of.
func (t *Type) Merge(live, applied any) (any, error) {
	return (*Semantics)(nil).Merge(t, live, applied)
}

// Merge is [Type.Merge] for values of type t with the equality of s: where live and applied are equal, live's value
// stays.
func (s *Semantics) Merge(t *Type, live, applied any) (any, error) {
	m := merger{semantics: s}
	out, _ := m.merge(t, live, applied)
	if err := m.err(); err != nil {
		return nil, err
	}
	return out, nil
}

type merger struct {
	faults
	semantics *Semantics
	depth     int // of the values in the object
}

// merge returns the merged value, and whether it is live itself. One of the values may be missing.
func (m *merger) merge(t *Type, live, applied any) (out any, unchanged bool) {
	switch {
	case isMissing(applied):
		return live, true
	case isMissing(live):
		// Applied is valid and has no duplicates, so it is the result.
		return applied, false
	case same(live, applied):
		return live, true
	case m.depth+len(m.path) > MaxDepth:
		m.add(TooDeep, "nested deeper than %d", MaxDepth)
		return live, true
	}
	switch t.shapeOf(applied).first() {
	case mapShape:
		return m.mergeMaps(t, live, applied)
	case listShape:
		return m.mergeLists(t, live, applied)
	}
	return m.mergeLeaf(t, live, applied)
}

// mergeLeaf returns applied, or live if the two are equal.
func (m *merger) mergeLeaf(t *Type, live, applied any) (any, bool) {
	if m.semantics != nil && m.semantics.leavesEqual(t, live, applied) {
		return live, true
	}
	return applied, false
}

func (m *merger) mergeMaps(of *Type, live, applied any) (any, bool) {
	t := of.Map
	l, r := asMap(live), asMap(applied)
	switch {
	case t.Atomic || len(l) == 0 && len(r) == 0:
		return m.mergeLeaf(of, live, applied)
	case len(r) == 0:
		return live, true
	case len(l) == 0 && m.semantics == nil:
		return applied, false
	}
	var out map[string]any // a copy of l, made at the first change
	for name, rv := range r {
		lv, ok := l[name]
		if !ok && m.semantics.asAbsent(t, name, rv, m.depth+len(m.path)) ||
			ok && m.semantics.bothAbsent(t, name, lv, rv, m.depth+len(m.path)) {
			continue
		}
		merged := rv
		if ok {
			elem := t.typeOf(name)
			m.push(fieldpath.Field(name))
			var unchanged bool
			merged, unchanged = m.merge(elem, lv, rv)
			m.pop()
			if unchanged {
				continue
			}
		}
		if out == nil {
			out = make(map[string]any, len(l)+1)
			maps.Copy(out, l)
		}
		out[name] = merged
	}
	if out == nil {
		return live, true
	}
	return out, false
}

func (m *merger) mergeLists(of *Type, live, applied any) (any, bool) {
	t := of.List
	l, r := asList(live), asList(applied)
	switch {
	case t.Kind == AtomicList || len(l) == 0 && len(r) == 0:
		return m.mergeLeaf(of, live, applied)
	case len(r) == 0:
		return live, true
	case len(l) == 0:
		return applied, false
	}
	if out, unchanged, ok := m.mergeInOrder(t, l, r); ok {
		if unchanged {
			return live, true
		}
		return out, false
	}
	x := listMerge{t: t, live: l, applied: r, liveIndex: t.indexOf(l), appliedIndex: t.indexOf(r)}
	for text := range x.appliedIndex.many {
		e := x.appliedIndex.elems[x.appliedIndex.first[text]]
		m.add(Duplicate, "duplicate entries for key %s", shortly{e})
	}
	if len(m.errs) > 0 {
		return nil, false
	}
	out := x.run(m)
	if len(out) == len(l) {
		unchanged := true
		for i := range out {
			unchanged = unchanged && same(out[i], l[i])
		}
		if unchanged {
			return live, true
		}
	}
	return out, false
}

// listMerge merges two lists by the elements of their items (spec rule 3.7), in the way that [matcher.order]
// describes. It is the definition for lists with duplicates, which a matcher can't pair.
type listMerge struct {
	t                       *List
	live, applied           []any
	liveIndex, appliedIndex index

	shared []fieldpath.Element // shared items that were not taken yet
	out    []any
}

// run merges. Each iteration moves at least one of the two cursors.
func (x *listMerge) run(m *merger) []any {
	for _, e := range x.appliedIndex.elems {
		if x.liveIndex.has(e) {
			x.shared = append(x.shared, e)
		}
	}
	x.out = make([]any, 0, max(len(x.live), len(x.applied)))
	merged := make(map[string]bool, len(x.appliedIndex.elems))
	li, ri := 0, 0
	lefts, rights := x.liveIndex.elems, x.appliedIndex.elems
	for li < len(lefts) || ri < len(rights) {
		if li < len(lefts) && ri < len(rights) {
			if lefts[li].Equal(rights[ri]) {
				merged[rights[ri].Text()] = true
				x.takeShared(m, ri)
				if len(x.shared) > 0 {
					x.shared = x.shared[1:]
				}
				li++
				ri++
				continue
			}
			if x.appliedIndex.has(lefts[li]) && len(x.shared) > 0 && !x.shared[0].Equal(lefts[li]) {
				li++
				continue
			}
		}
		if li < len(lefts) {
			if e := lefts[li]; !x.appliedIndex.has(e) {
				x.out = append(x.out, x.live[x.liveIndex.at[li]])
				li++
				continue
			} else if merged[e.Text()] {
				li++
			}
		}
		if ri < len(rights) {
			e := rights[ri]
			merged[e.Text()] = true
			x.takeShared(m, ri)
			ri++
			if len(x.shared) > 0 && x.shared[0].Equal(e) {
				x.shared = x.shared[1:]
			}
		}
	}
	return x.out
}

// takeShared appends the item of applied at position ri of its index, merged with live's item of the same element if
// there is exactly one.
func (x *listMerge) takeShared(m *merger, ri int) {
	e := x.appliedIndex.elems[ri]
	item := x.applied[x.appliedIndex.at[ri]]
	if x.liveIndex.times(e) == 1 {
		m.push(e)
		item, _ = m.merge(x.t.Elem, x.live[x.liveIndex.at[x.liveIndex.first[e.Text()]]], item)
		m.pop()
	}
	x.out = append(x.out, item)
}
