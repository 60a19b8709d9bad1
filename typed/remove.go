package typed

import (
	"maps"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Remove returns v without the entries and items whose paths are in set (spec rule 6.1). It removes nothing inside an
// atomic list or map. A container whose whole content is removed stays, empty; upstream makes it null
// (doc/differences.md, 1). For example, with ports keyed by port:
//
//	v       image: a  ports: [{port: 80}]
//	set     .image  .ports[port=80]
//	out     ports: []                        RemoveToNull: ports: null
//
// The result shares memory with v, and is v itself if nothing is removed. It costs O(paths of set), plus the length
// of each list that set has items of.
func (t *Type) Remove(v any, set *fieldpath.Set) any {
	out, _ := remover{}.value(t, v, set)
	return out
}

// RemoveToNull is Remove, but a container becomes null if its whole content is removed, or if it was empty although
// set has paths below it. That distinguishes it from a container that was left empty on purpose: unlike an empty
// list, a null is owned by itself, so the container of removed items is still in the [Type.FieldSet] of the result.
func (t *Type) RemoveToNull(v any, set *fieldpath.Set) any {
	out, _ := remover{toNull: true}.value(t, v, set)
	return out
}

type remover struct{ toNull bool }

// value returns v without set; unchanged means that out is v itself.
func (r remover) value(t *Type, v any, set *fieldpath.Set) (out any, unchanged bool) {
	if set.Empty() {
		return v, true
	}
	size := 0
	switch kind := kindOf(v); {
	case kind == isMap && t.Map != nil && !t.Map.isAtomic:
		kept, isSame := r.entries(t.Map, asMap(v), set)
		out, size, unchanged = kept, len(kept), isSame
	case kind == isList && t.List != nil && !t.List.IsAtomic():
		kept, isSame := r.items(t.List, asList(v), set)
		out, size, unchanged = kept, len(kept), isSame
	default:
		return v, true
	}
	switch {
	case r.toNull && size == 0:
		return nil, false
	case unchanged:
		return v, true
	}
	return out, false
}

func (r remover) entries(m *Map, entries map[string]any, set *fieldpath.Set) (out map[string]any, unchanged bool) {
	out, unchanged = entries, true
	for e, entry := range set.Level() {
		name, isField := e.Field()
		v, ok := entries[name]
		if !ok || !isField {
			continue
		}
		var kept any
		if !entry.Member {
			t := m.typeOf(name)
			if kept, ok = r.value(t, v, entry.Below); ok {
				continue
			}
		}
		if unchanged {
			out, unchanged = maps.Clone(entries), false
		}
		if entry.Member {
			delete(out, name)
		} else {
			out[name] = kept
		}
	}
	return out, unchanged
}

func (r remover) items(l *List, list []any, set *fieldpath.Set) (out []any, unchanged bool) {
	entries := maps.Collect(set.Level()) // a look into the set would compare texts
	out = make([]any, 0, len(list))
	unchanged = true
	for _, item := range list {
		e, err := l.element(item)
		if err != nil {
			out = append(out, item)
			continue
		}
		entry := entries[e]
		if entry.Member {
			unchanged = false
			continue
		}
		kept, same := r.value(l.elem, item, entry.Below)
		unchanged = unchanged && same
		out = append(out, kept)
	}
	return out, unchanged
}
