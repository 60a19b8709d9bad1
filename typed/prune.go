package typed

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Prune returns v, the result of a merge, without the values that the intent's manager dropped and nobody owns
// (spec rule 6.1, and spec rule 6.2 for what is in them). last is what the manager's intent before owned, dropped is
// the part of it that the intent does not own, and owners are what every manager owns now, the intent's included; all
// at the version of v. ok is false if one walk can't decide it; the caller then uses upstream's definition on whole
// objects.
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
// For example, with a list keyed by name, of which another manager owns the item b:
//
//	v         {items: [{name: a, x: 1}, {name: b}], other: 1}
//	dropped   .items[name=a], .items[name=a].name, .items[name=a].x
//	gone      .items[name=a]: items is in K because of b, and b stays in it
//	out       {items: [{name: b}], other: 1}
//
// v may be or hold a [Container]. The result shares memory with v, and is v itself if nothing is gone; else it is a map
// that holds the rest as v has it. tookOwned means that something is gone, or is now empty, that is owned itself: a
// struct that the intent has as null or {}, in which only empty lists were left.
func (t *Type) Prune(v any, last Owned, dropped *fieldpath.Set, owners []Owned) (out any, tookOwned, ok bool) {
	if !isLiveMap(v) || t.Map == nil || t.Map.Atomic || t.shapeOf(v).first() != mapShape {
		return v, false, false
	}
	p := pruner{}
	cursors := make([]owned, len(owners))
	for i := range owners {
		cursors[i] = owners[i].cursor()
	}
	for e, entry := range dropped.Level() {
		name, isField := e.Field()
		if _, declared := t.Map.field(name); !isField || !declared && !entry.Member && !isOwned(last.cursor(), "f:"+name) {
			return v, false, false
		}
	}
	out = p.entries(t.Map, v, dropped, last.cursor(), cursors, false, 0)
	return out, p.tookOwned, !p.failed
}

// pruner is one walk of [Type.Prune].
type pruner struct {
	failed    bool // items are ambiguous
	tookOwned bool
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

// entries removes from a map what is gone. swallowed means that the map is not in P1.
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
		kept, gone := p.place(t, child, entry, was, here, declared, swallowed, stays, depth+1)
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
	t *Type, v any, dropped fieldpath.Entry, last owned, owners []owned, declared, swallowed, stays bool, depth int,
) (out any, gone bool) {
	isCandidate := dropped.Member || declared || last.isMember()
	isKept := inKept(owners, declared)
	if !stays && isCandidate {
		p.tookOwned = p.tookOwned || isKept
		return nil, true
	}
	if dropped.Below.Empty() || t.isLeaf(v) || depth > MaxDepth {
		return v, false
	}
	swallowed = swallowed || !isKept
	isEmpty := false
	switch kindOf(v) {
	case isMap:
		out = p.entries(t.Map, v, dropped.Below, last, owners, swallowed, depth)
		isEmpty = isEmptyMap(out)
	case isList:
		out = p.items(t.List, v, dropped.Below, last, owners, swallowed, depth)
		n, _ := lenOf(out)
		isEmpty = n == 0
	}
	p.tookOwned = p.tookOwned || isEmpty && slices.ContainsFunc(owners, owned.isMember)
	return out, false
}

// items removes from a set or keyed list what is gone.
func (p *pruner) items(
	l *List, v any, dropped *fieldpath.Set, last owned, owners []owned, swallowed bool, depth int,
) any {
	list := itemsOf(v)
	if !swallowed && p.changesKeys(l, list, owners, depth) {
		p.failed = true
		return v
	}
	var out []any
	var remove []int
	find := p.finder(l, list, dropped.Width())
	for e, entry := range dropped.Level() {
		at := find(e)
		if at < 0 {
			continue
		}
		item := list[at]
		name := memberName(e)
		here := p.members(owners, name)
		was, _ := last.member(name)
		stays := !swallowed && inKept(here, false) && p.keepsItem(l, item, here, depth+1)
		kept, gone := p.place(l.Elem, item, entry, was, here, false, swallowed, stays, depth+1)
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

// finder returns a function that returns the position of the item of an element, or -1, for n calls. The walk fails
// if there are several such items.
func (p *pruner) finder(l *List, list []any, n int) func(e fieldpath.Element) int {
	if n > maxSearched {
		index := l.indexOf(list)
		return func(e fieldpath.Element) int {
			i, ok := index.first[e.Text()]
			if !ok || !index.elems[i].Equal(e) {
				return -1
			}
			p.failed = p.failed || index.times(e) > 1
			return index.at[i]
		}
	}
	keys := l.sortedKeys()
	return func(e fieldpath.Element) int {
		wanted, ok := l.itemLike(e)
		if !ok {
			return -1
		}
		at := -1
		for i, item := range list {
			if l.sameItem(item, wanted, keys) {
				p.failed = p.failed || at >= 0
				at = i
			}
		}
		return at
	}
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

// isLeaf reports whether a value is owned as a whole: a scalar, a null, an atomic list or map, or an empty map.
func (t *Type) isLeaf(v any) bool {
	if isEmptyValue(v) {
		return true
	}
	switch kindOf(v) {
	case isMap:
		return t.shapeOf(v).first() != mapShape || t.Map.Atomic
	case isList:
		return t.shapeOf(v).first() != listShape || t.List.Kind == AtomicList
	}
	return true
}

// isOwnable reports whether an entry of a map is in own(v): every entry, except for a declared field that has nothing
// to own.
func (t *Type) isOwnable(v any, declared bool, depth int) bool {
	if !declared || t.isLeaf(v) || depth > MaxDepth {
		return true
	}
	switch kindOf(v) {
	case isMap:
		for name, child := range entriesOf(v) {
			ct, declared := t.Map.field(name)
			if ct == nil {
				ct = deducedType
			}
			if ct.isOwnable(child, declared, depth+1) {
				return true
			}
		}
	case isList:
		for _, item := range itemsOf(v) {
			if _, err := t.List.element(item); err == nil {
				return true
			}
		}
	}
	return false
}

// keeps reports whether a granular container that is in K, and not empty, is in own(P1). It is if P1 leaves anything
// in it that is owned, or nothing at all, which makes it null.
func (p *pruner) keeps(t *Type, v any, owners []owned, depth int) bool {
	owned, _ := p.left(t, v, owners, depth)
	return owned
}

// left is keeps; isNull means that P1 has a null for the container.
func (p *pruner) left(t *Type, v any, owners []owned, depth int) (owned, isNull bool) {
	if depth > MaxDepth {
		return true, false
	}
	switch kindOf(v) {
	case isMap:
		return p.leftInMap(t.Map, v, owners, depth)
	case isList:
		return p.leftInList(t.List, itemsOf(v), owners, depth)
	}
	return true, false
}

func (p *pruner) leftInMap(m *Map, v any, owners []owned, depth int) (owned, isNull bool) {
	kept := 0
	for name, child := range entriesOf(v) {
		t, declared := m.field(name)
		if t == nil {
			t = deducedType
		}
		if !t.isOwnable(child, declared, depth+1) {
			kept++
			continue
		}
		here := p.members(owners, "f:"+name)
		if !inKept(here, declared) {
			continue
		}
		kept++
		if !declared || t.isLeaf(child) || p.keeps(t, child, here, depth+1) {
			return true, false
		}
	}
	return kept == 0, kept == 0
}

func (p *pruner) leftInList(l *List, v []any, owners []owned, depth int) (owned, isNull bool) {
	keys := l.sortedKeys()
	kept, changed, allNull := 0, false, true
	w := walk{}
	for _, item := range v {
		if !w.itemName(l, keys, item) {
			kept++
			allNull = allNull && item == nil
			continue
		}
		here := p.members(owners, string(w.name))
		if !inKept(here, false) {
			changed = true
			continue
		}
		kept++
		selectable, itemNull := p.leftOfItem(l, item, here, depth)
		if selectable {
			return true, false
		}
		changed, allNull = true, allNull && itemNull
	}
	isNull = kept == 0 || changed && allNull
	return isNull, isNull
}

// leftOfItem reports, for an item that is in K, whether P1 leaves an item with a key, and whether it leaves a null.
func (p *pruner) leftOfItem(l *List, item any, owners []owned, depth int) (selectable, isNull bool) {
	if l.Elem.isLeaf(item) { // as each of a set is
		return true, false
	}
	for _, key := range l.Keys {
		_, has := entryOf(item, key)
		if has && p.keepsKey(l, key, owners) {
			return true, false
		}
	}
	if _, isNull = p.left(l.Elem, item, owners, depth+1); isNull {
		return false, true
	}
	return slices.ContainsFunc(l.Keys, func(key string) bool { return l.keyDefault(key) != nil }), false
}

// keepsKey reports whether a key field of an item is in K.
func (p *pruner) keepsKey(l *List, key string, owners []owned) bool {
	declared := false
	if l.Elem.Map != nil {
		_, declared = l.Elem.Map.field(key)
	}
	return inKept(p.members(owners, "f:"+key), declared)
}

// changesKeys reports whether P1 leaves an item with another key: some of its key fields are not in K, while others
// are, or have defaults. Such an item may have the key of another item.
func (p *pruner) changesKeys(l *List, list []any, owners []owned, depth int) bool {
	if len(l.Keys) == 1 && l.keyDefault(l.Keys[0]) == nil || l.Kind == SetList {
		return false
	}
	keys, w := l.sortedKeys(), walk{}
	for _, item := range list {
		if !w.itemName(l, keys, item) {
			continue
		}
		here := p.members(owners, string(w.name))
		if !inKept(here, false) || p.keepsItem(l, item, here, depth+1) {
			continue
		}
		if selectable, _ := p.leftOfItem(l, item, here, depth+1); selectable {
			return true
		}
	}
	return false
}

// keepsItem reports, for an item that is in K, whether P1 leaves it with the same key.
func (p *pruner) keepsItem(l *List, item any, owners []owned, depth int) bool {
	if selectable, _ := p.leftOfItem(l, item, owners, depth); !selectable {
		return false
	}
	if l.Elem.isLeaf(item) {
		return true
	}
	for _, key := range l.Keys {
		if v, has := entryOf(item, key); has && !p.keepsKey(l, key, owners) && !sameKey(v, l.keyDefault(key)) {
			return false
		}
	}
	return true
}
