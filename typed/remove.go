package typed

import (
	"maps"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Remove returns v without the entries and items whose paths are in set (spec rule 6.1). It does not remove anything
// inside an atomic list or map. A container that loses its whole content remains, empty; upstream makes it null
// (doc/differences.md, 1). For example, with ports keyed by port:
//
//	v       image: a  ports: [{port: 80}]
//	set     .image  .ports[port=80]
//	out     ports: []                        RemoveToNull: ports: null
//
// The result shares memory with v; it is v itself if nothing is removed. Remove costs O(paths of set), plus the length
// of each list that has items in set.
func (t *Type) Remove(v any, set *fieldpath.Set) any {
	return remover{}.value(t, v, set)
}

// RemoveToNull is Remove, except that a container becomes null if it loses its whole content, or if it was already
// empty and set has paths below it. The null shows that the container lost its content: the [Type.FieldSet] of the
// result contains a list that became null, but it does not contain an empty list.
func (t *Type) RemoveToNull(v any, set *fieldpath.Set) any {
	return remover{toNull: true}.value(t, v, set)
}

type remover struct{ toNull bool }

// value returns v without set.
func (r remover) value(t *Type, v any, set *fieldpath.Set) (out any) {
	if set.IsEmpty() {
		return v
	}
	switch kind := kindOf(v); {
	case kind == isMap && t.Map != nil && !t.Map.isAtomic:
		out = r.entries(t.Map, asMap(v), set)
	case kind == isList && t.List != nil && !t.List.IsAtomic():
		out = r.items(t.List, asList(v), set)
	default:
		return v
	}
	if r.toNull && len(asMap(out)) == 0 && len(asList(out)) == 0 {
		return nil
	}
	return out
}

func (r remover) entries(m *Map, entries map[string]any, set *fieldpath.Set) map[string]any {
	out := entries
	for e, entry := range set.Level() {
		name, isField := e.Field()
		v, ok := entries[name]
		if !ok || !isField {
			continue
		}
		kept := missing
		if !entry.Member {
			kept = r.value(m.typeOf(name), v, entry.Below)
		}
		if !same(kept, v) {
			out = withEntry(out, entries, name, kept)
		}
	}
	return out
}

func (r remover) items(l *List, list []any, set *fieldpath.Set) []any {
	entries := maps.Collect(set.Level()) // lookups in the set would compare texts
	return withItems(list, func(_ int, item any) any {
		e, err := l.element(item)
		if err != nil {
			return item
		}
		entry := entries[e]
		if entry.Member {
			return missing
		}
		return r.value(l.elem, item, entry.Below)
	})
}
