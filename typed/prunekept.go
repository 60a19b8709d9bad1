package typed

import "slices"

// The functions of this file answer one question of [Type.Prune] without making P1: is a container that is in K also in
// own(P1)? It is not always. P1 loses what nobody owns, and a container in which nothing is left that can be owned is
// not in own(P1), so it goes with the last owned thing in it (spec rule 6.2). For example, with a struct s of which
// bob, who owned .s.a, dropped it:
//
//	s: {a: 1, b: 2}   alice owns .s.b     P1 has s: {b: 2}    s stays
//	s: {a: 1, b: []}  alice owns .s       P1 has s: {b: []}   nothing in it can be owned: s goes, although it is in K
//	s: {a: 1}         alice owns .s       P1 has s: null      a null is owned itself: s stays, empty
//
// The last line is why emptied containers count as null, and why the results below tell null from empty.

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
	var index *index // of v; nil until it is needed
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
		if !selectable {
			if index == nil {
				x := l.indexOf(v)
				index = &x
			}
			// An item that is there twice stays as it is: own(v) has nothing in it.
			e, _ := l.element(item)
			selectable = index.times(e) > 1
		}
		if selectable {
			return true, false
		}
		changed, allNull = true, allNull && itemNull
	}
	isNull = kept == 0 || changed && allNull
	return isNull, isNull
}

// leftOfItem reports, for an item that is in K, whether P1 leaves an item with a key, and whether it leaves a null. An
// entry may own an item and nothing in it: then P1 has the item without its key fields, which nobody can own.
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
