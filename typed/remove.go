package typed

import "github.com/tenure-ssa/tenure/fieldpath"

// Remove returns v without the entries and items whose paths are in set (spec
// rule 6). What is inside an atomic list or map is not removed. A container
// that loses everything in it stays, empty; upstream makes it null
// (doc/differences.md, 1). The result shares memory with v, and is v itself
// when nothing was removed.
func (t *Type) Remove(v any, set *fieldpath.Set) any {
	out, _ := t.remove(v, set)
	return out
}

func (t *Type) remove(v any, set *fieldpath.Set) (out any, unchanged bool) {
	if set.Empty() {
		return v, true
	}
	switch x := v.(type) {
	case map[string]any:
		if t.shapeOf(v).first() == mapShape && !t.Map.Atomic {
			if kept, unchanged := t.Map.remove(x, set); !unchanged {
				return kept, false
			}
		}
	case []any:
		if t.shapeOf(v).first() == listShape && t.List.Kind != AtomicList {
			if kept, unchanged := t.List.remove(x, set); !unchanged {
				return kept, false
			}
		}
	}
	return v, true
}

func (m *Map) remove(entries map[string]any, set *fieldpath.Set) (out map[string]any, unchanged bool) {
	for e, entry := range set.Level() {
		name, ok := e.Field()
		if !ok {
			continue
		}
		v, ok := entries[name]
		if !ok {
			continue
		}
		var kept any
		if !entry.Member {
			t, _ := m.field(name)
			if t == nil {
				t = deducedType
			}
			if kept, ok = t.remove(v, entry.Below); ok {
				continue
			}
		}
		if out == nil {
			out = make(map[string]any, len(entries))
			for k, v := range entries {
				out[k] = v
			}
		}
		if entry.Member {
			delete(out, name)
		} else {
			out[name] = kept
		}
	}
	return out, out == nil
}

func (l *List) remove(list []any, set *fieldpath.Set) (out []any, unchanged bool) {
	out = make([]any, 0, len(list))
	unchanged = true
	for _, item := range list {
		e, err := l.element(item)
		if err != nil {
			out = append(out, item)
			continue
		}
		member, below := set.At(e)
		if member {
			unchanged = false
			continue
		}
		kept, same := l.Elem.remove(item, below)
		unchanged = unchanged && same
		out = append(out, kept)
	}
	return out, unchanged
}
