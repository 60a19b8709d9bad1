package typed

import (
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Extract returns the part of v whose paths are in set: the intent that owns exactly these paths (spec rule 7.1). The
// field set of an entry may contain containers. To omit the fields that other managers added to these containers, pass
// the set's [fieldpath.Set.Leaves]. If only a part of a list item is extracted, this part has the key fields that are
// in set; if withKeys is true, it has all key fields. Extract returns nil if v contains no path of set. The result
// shares memory with v.
func (t *Type) Extract(v any, set *fieldpath.Set, withKeys bool) any {
	out, ok := extractor{withKeys}.value(t, v, set)
	if !ok {
		return nil
	}
	return out
}

type extractor struct{ withKeys bool }

// value returns the part of v at the paths in set; ok is false if there is none.
func (x extractor) value(t *Type, v any, set *fieldpath.Set) (out any, ok bool) {
	if m := asMap(v); len(m) > 0 && t.Map != nil && !t.Map.isAtomic {
		kept := x.entries(t.Map, m, set)
		return kept, len(kept) > 0
	}
	if list := asList(v); len(list) > 0 && t.List != nil && !t.List.IsAtomic() {
		kept := x.items(t.List, list, set)
		return kept, len(kept) > 0
	}
	return v, true
}

func (x extractor) entries(m *Map, entries map[string]any, set *fieldpath.Set) map[string]any {
	out := map[string]any{}
	for e, entry := range set.Level() {
		name, isField := e.Field()
		v, ok := entries[name]
		if !ok || !isField {
			continue
		}
		t := m.typeOf(name)
		part, ok := x.value(t, v, entry.Below)
		switch {
		case ok:
			out[name] = part
		case entry.Member:
			// The entry owns the container but not its content.
			out[name] = ownedLike(v)
		}
	}
	return out
}

// ownedLike returns the intent that owns a container without its content. For a list, it is null, because an intent
// with an empty list owns nothing (spec rule 4.2).
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
		case !below.IsEmpty() || member && x.withKeys:
			part, ok := x.value(l.elem, item, below)
			if !ok && !member {
				continue
			}
			if x.withKeys {
				l.addKeys(part, item)
			}
			out = append(out, part)
		case member:
			out = append(out, item)
		}
	}
	return out
}

// addKeys adds all key fields of item to part. part is a part of item, or item itself.
func (l *List) addKeys(part, item any) {
	from, to := asMap(item), asMap(part)
	if trees.SameMap(from, to) {
		return
	}
	for _, name := range l.keys {
		if v, ok := from[name]; ok {
			to[name] = v
		}
	}
}
