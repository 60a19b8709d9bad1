package typed

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Prune returns v, the result of a merge, without the values that the intent's manager dropped and nobody owns
// (spec rule 6.1, and spec rule 6.2 for what is in them). last is what the manager's intent before owned, dropped is
// the part of it that the intent does not own, and owners are what every manager owns now, the intent's included; all
// at the version of v.
//
// The definition, with C = t.WithDeclared(last), K = t.WithDeclared(all owners), and own(x) =
// t.WithDeclared(t.FieldSet(x)):
//
//	P0    = v without C                              the candidates are removed
//	P1    = v without (own(v) - own(P0) - K)         what anybody owns is put back
//	gone  = (own(v) - own(P1)) ∩ C                   owned by last, and not in P1
//	out   = v without gone
//
// Only values on a path of dropped can be gone (doc/differences.md, 15), by two invariants. An intent owns every item
// that it owns something in, so what it owned before and still owns is in K, with everything around it. And every
// field of the root with something dropped is in C, so nothing below it is in P0. So the walk visits the paths of
// dropped, with a cursor into each owner. At each place it asks whether the place is in K, and if so, whether P1
// leaves anything in it that can be owned. It costs O(dropped) for each owner, with one look at the siblings.
//
// Two rare kinds of places break what the walk relies on. An entry may own something in a field of the root that is
// neither declared nor owned itself: then P0 has the rest of that field, and the walk counts own(P0) as one more owner,
// because K is never asked for without it. And the items of a list may be ambiguous (see [pruner.items]): then the
// definition is carried out for this list alone, by the plain operations, and the walk goes on behind it.
//
// For example, with a list keyed by name, of which another manager owns the item b:
//
//	v         {items: [{name: a, x: 1}, {name: b}], other: 1}
//	dropped   .items[name=a], .items[name=a].name, .items[name=a].x
//	gone      .items[name=a]: items is in K because of b, and b stays in it
//	out       {items: [{name: b}], other: 1}
//
// v may be or hold a [Container]. The result shares memory with v, and is v itself if nothing is gone; else it is a map
// that holds the rest as v has it. tookOwned is false if nothing is gone, or is now empty, that is owned itself. Such
// is a struct that the intent has as null or {}, in which only empty lists were left. The error says what is wrong with
// a Container or an entry, or that a list of ambiguous items exceeds a limit; nothing is removed then.
func (t *Type) Prune(v any, last Owned, dropped *fieldpath.Set, owners []Owned) (out any, tookOwned bool, err error) {
	if !isLiveMap(v) || t.isLeaf(v) {
		return v, false, nil // nothing is owned in it
	}
	p := pruner{}
	cursors := make([]owned, len(owners), len(owners)+1)
	for i := range owners {
		cursors[i] = owners[i].cursor()
	}
	if !t.Map.areCandidates(dropped, last.cursor()) {
		cursors = append(cursors, p.ownedWithout(t, v, last.cursor()))
	}
	out = p.entries(t.Map, v, dropped, last.cursor(), cursors, false, 0)
	if p.err != nil {
		return v, false, p.err
	}
	return out, p.tookOwned, nil
}

// pruner is one walk of [Type.Prune].
type pruner struct {
	tookOwned bool
	err       error
}

// areCandidates reports whether each field of the root with something dropped is in C, so that nothing of it is in P0.
func (m *Map) areCandidates(dropped *fieldpath.Set, last owned) bool {
	for e, entry := range dropped.Level() {
		name, _ := e.Field()
		if _, declared := m.field(name); !declared && !entry.Member && !isOwned(last, "f:"+name) {
			return false
		}
	}
	return true
}

// members returns the members called name of the cursors that have one.
func (p *pruner) members(cursors []owned, name string) []owned {
	var out []owned
	for _, c := range cursors {
		if member, ok := c.member(name); ok {
			out = append(out, member)
		}
	}
	return out
}

// member returns the member called name of a FieldsV1, if it exists.
func (o owned) member(name string) (member owned, ok bool) {
	if o.set == nil {
		v, ok := o.tree[name]
		tree, _ := v.(map[string]any)
		return owned{tree: tree}, ok
	}
	e, err := fieldpath.ParseElement(name)
	if err != nil {
		return owned{}, false
	}
	self, below := o.set.At(e)
	return owned{set: below, self: self}, self || below != nil
}

func isOwned(o owned, name string) bool {
	member, ok := o.member(name)
	return ok && member.isMember()
}

// inKept reports whether a place is in K, given the members that the owners have of it.
func inKept(members []owned, declared bool) bool {
	return slices.ContainsFunc(members, func(o owned) bool {
		return o.isMember() || declared && o.count() > 0
	})
}

// entries removes from a map what is gone. swallowed means that the map is not in own(P1): nobody owns it, or P1 has it
// without what identifies it. Then nothing in it is in own(P1) either.
func (p *pruner) entries(
	m *Map, v any, dropped *fieldpath.Set, last owned, owners []owned, swallowed bool, depth int,
) any {
	var out map[string]any
	for e, entry := range dropped.Level() {
		name, isField := e.Field()
		child, has := entryOf(v, name)
		if !isField || !has {
			continue
		}
		t, declared := m.field(name)
		if t == nil {
			t = deducedType
		}
		if !t.isOwnable(child, declared, depth+1) {
			continue
		}
		here := p.members(owners, "f:"+name)
		was, _ := last.member("f:" + name)
		stays := !swallowed && inKept(here, declared) && (t.isLeaf(child) || !declared || p.keeps(t, child, here, depth+1))
		kept, gone := p.place(t, child, entry, was, here, declared, stays, depth+1)
		if !gone && same(kept, child) {
			continue
		}
		if out == nil {
			out = cloneEntries(v, 0)
		}
		if gone {
			delete(out, name)
		} else {
			out[name] = kept
		}
	}
	if out == nil {
		return v
	}
	return out
}

// place removes what is gone from a place that is on a path of dropped, or reports that the place itself is gone.
// stays means that it is in own(P1).
func (p *pruner) place(
	t *Type, v any, dropped fieldpath.Entry, last owned, owners []owned, declared, stays bool, depth int,
) (out any, gone bool) {
	isCandidate := dropped.Member || declared || last.isMember()
	if !stays && isCandidate {
		p.tookOwned = p.tookOwned || inKept(owners, declared)
		return nil, true
	}
	if dropped.Below.Empty() || t.isLeaf(v) || depth > MaxDepth {
		return v, false
	}
	isEmpty := false
	switch kindOf(v) {
	case isMap:
		out = p.entries(t.Map, v, dropped.Below, last, owners, !stays, depth)
		isEmpty = isEmptyMap(out)
	case isList:
		out = p.items(t, v, dropped.Below, last, owners, !stays, depth)
		n, _ := lenOf(out)
		isEmpty = n == 0
	}
	p.tookOwned = p.tookOwned || isEmpty && slices.ContainsFunc(owners, owned.isMember)
	return out, false
}

// items removes from a set or keyed list what is gone. The items are ambiguous if one that was dropped is there twice:
// own(v) has nothing in it, so all of its items are gone or none, with their contents. Or if P1 leaves an item with
// another key, which may be that of a second item.
func (p *pruner) items(
	t *Type, v any, dropped *fieldpath.Set, last owned, owners []owned, swallowed bool, depth int,
) any {
	l, list := t.List, itemsOf(v)
	positions, distinct := l.positions(list, dropped)
	if !distinct || !swallowed && p.changesKeys(l, list, owners, depth) {
		return p.listBySets(t, v, dropped, last, owners, swallowed, depth)
	}
	var out []any
	var remove []int
	for e, entry := range dropped.Level() {
		at := positions[0]
		positions = positions[1:]
		if at < 0 {
			continue
		}
		item := list[at]
		name := memberName(e)
		here := p.members(owners, name)
		was, _ := last.member(name)
		stays := !swallowed && inKept(here, false) && p.keepsItem(l, item, here, depth+1)
		kept, gone := p.place(l.Elem, item, entry, was, here, false, stays, depth+1)
		if gone {
			remove = append(remove, at)
		} else if !same(kept, item) {
			if out == nil {
				out = slices.Clone(list)
			}
			out[at] = kept
		}
	}
	switch {
	case len(remove) == 0 && out == nil:
		return v
	case len(remove) == 0:
		return out
	case out == nil:
		out = list
	}
	slices.Sort(remove)
	rest := make([]any, 0, len(out)-len(remove))
	for i, item := range out {
		if len(remove) > 0 && remove[0] == i {
			remove = remove[1:]
			continue
		}
		rest = append(rest, item)
	}
	return rest
}

// memberName returns the FieldsV1 member name of an item's element.
func memberName(e fieldpath.Element) string {
	switch e.Kind() {
	case fieldpath.KindKey:
		return "k:" + e.Text()
	case fieldpath.KindValue:
		return "v:" + e.Text()
	}
	return e.Text()
}

// positions returns, for each element of set, the position of its item in a list, or -1. distinct is false if there
// are several such items of one element.
func (l *List) positions(list []any, set *fieldpath.Set) (positions []int, distinct bool) {
	n := set.Width()
	positions = make([]int, 0, n)
	if n > maxSearched {
		index := l.indexOf(list)
		for e := range set.Level() {
			at := -1
			if i, ok := index.first[e.Text()]; ok && index.elems[i].Equal(e) {
				if index.times(e) > 1 {
					return nil, false
				}
				at = index.at[i]
			}
			positions = append(positions, at)
		}
		return positions, true
	}
	keys := l.sortedKeys()
	for e := range set.Level() {
		at := -1
		if wanted, ok := l.itemLike(e); ok {
			for i, item := range list {
				if !l.sameItem(item, wanted, keys) {
					continue
				}
				if at >= 0 {
					return nil, false
				}
				at = i
			}
		}
		positions = append(positions, at)
	}
	return positions, true
}

// itemLike returns an item whose element is e.
func (l *List) itemLike(e fieldpath.Element) (any, bool) {
	if l.Kind == SetList {
		return e.Value()
	}
	fields, ok := e.Key()
	if !ok {
		return nil, false
	}
	item := make(map[string]any, len(fields))
	for _, f := range fields {
		item[f.Name] = f.Value
	}
	return item, true
}
