package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// Extract returns the part of v whose paths are in set: the value of an intent
// that owns just that (spec rule 7.1). Give it [fieldpath.Set.Leaves] of an
// entry's set to leave out what others put into the entry's containers. An item
// of a keyed list that is partly extracted has its key fields only when they
// are in set or withKeys is true. It returns nil when nothing of set is in v.
// The result shares memory with v.
func (t *Type) Extract(v any, set *fieldpath.Set, withKeys bool) any {
	out, ok := extractor{withKeys}.value(t, v, set)
	if !ok {
		return nil
	}
	return out
}

type extractor struct{ withKeys bool }

// value returns the part of v below the paths of set; ok is false for no part
// at all.
func (x extractor) value(t *Type, v any, set *fieldpath.Set) (out any, ok bool) {
	switch s := t.shapeOf(v).first(); {
	case s == mapShape && !t.Map.Atomic:
		if m := asMap(v); len(m) > 0 {
			kept := x.entries(t.Map, m, set)
			return kept, len(kept) > 0
		}
	case s == listShape && t.List.Kind != AtomicList:
		if list := asList(v); len(list) > 0 {
			kept := x.items(t.List, list, set)
			return kept, len(kept) > 0
		}
	}
	return v, true
}

func (x extractor) entries(m *Map, entries map[string]any, set *fieldpath.Set) map[string]any {
	out := map[string]any{}
	for e, entry := range set.Level() {
		name, ok := e.Field()
		if !ok {
			continue
		}
		v, ok := entries[name]
		if !ok {
			continue
		}
		t, _ := m.field(name)
		if t == nil {
			t = deducedType
		}
		part, ok := x.value(t, v, entry.Below)
		switch {
		case ok:
			out[name] = part
		case entry.Member:
			// The container is owned, nothing in it is.
			out[name] = ownedLike(v)
		}
	}
	return out
}

// ownedLike returns what an intent has in the place of a container that it owns, and
// of which it owns no content: an empty list would own nothing (spec rule 4.2), so
// that a list is null.
func ownedLike(v any) any {
	if _, ok := v.([]any); ok {
		return nil
	}
	return map[string]any{}
}

func (x extractor) items(l *List, list []any, set *fieldpath.Set) []any {
	var out []any
	for _, item := range list {
		e, err := l.element(item)
		if err != nil {
			continue
		}
		member, below := set.At(e)
		switch {
		case !below.Empty() || member && x.withKeys:
			part, ok := x.value(l.Elem, item, below)
			if !ok && !member {
				continue
			}
			if !ok {
				part = map[string]any{}
			}
			if x.withKeys {
				part = l.addKeys(part, item)
			}
			out = append(out, part)
		case member:
			out = append(out, item)
		}
	}
	return out
}

// addKeys returns part, made from item, with the key fields that item has.
func (l *List) addKeys(part, item any) any {
	from, to := asMap(item), asMap(part)
	if from == nil || to == nil || sameMap(from, to) {
		return part
	}
	for _, name := range l.Keys {
		if v, ok := from[name]; ok {
			to[name] = v
		}
	}
	return to
}
