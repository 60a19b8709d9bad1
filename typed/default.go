package typed

// Default returns v as a server stores it that knows the schema and nothing else:
// a declared field that is absent has its default, and one that is null and not
// nullable is absent (spec rule 13.2). It goes down into atomic lists and maps, and into
// the defaults themselves. Defaults that only a server's own code knows, such as
// a Deployment's replicas, are not filled in.
//
// v must have been validated. The result shares memory with v and with the schema,
// and is v itself when there is nothing to fill in or to drop.
func (t *Type) Default(v any) any {
	left := MaxValues
	return t.fill(v, 0, &left)
}

// fill is Default of a value at a depth; left is how many more defaults are filled
// in. Both end what a schema asks for whose defaults contain each other.
func (t *Type) fill(v any, depth int, left *int) any {
	if depth > MaxDepth {
		return v
	}
	switch x := v.(type) {
	case map[string]any:
		if t.Map != nil {
			return t.Map.fill(x, depth, left)
		}
	case []any:
		if t.List != nil {
			return t.List.fill(x, depth, left)
		}
	}
	return v
}

func (m *Map) fill(entries map[string]any, depth int, left *int) map[string]any {
	out := entries
	change := func() map[string]any {
		if sameMap(out, entries) {
			out = make(map[string]any, len(entries)+1)
			for k, v := range entries {
				out[k] = v
			}
		}
		return out
	}
	for name, field := range m.Fields {
		v, there := entries[name]
		if field.Default != nil && (!there || v == nil && !field.Nullable) {
			if *left--; *left < 0 {
				break
			}
			change()[name] = field.Type.fill(field.Default, depth+1, left)
		} else if there && v == nil && !field.Nullable {
			delete(change(), name)
		}
	}
	for name, v := range entries {
		if t, _ := m.field(name); t != nil && v != nil {
			if filled := t.fill(v, depth+1, left); !sameContainer(v, filled) {
				change()[name] = filled
			}
		}
	}
	return out
}

func (l *List) fill(items []any, depth int, left *int) []any {
	out := items
	for i, item := range items {
		filled := l.Elem.fill(item, depth+1, left)
		if sameContainer(item, filled) {
			continue
		}
		if &out[0] == &items[0] {
			out = append(make([]any, 0, len(items)), items...)
		}
		out[i] = filled
	}
	return out
}

// sameContainer reports whether b, what became of a, is a itself; a scalar always
// is.
func sameContainer(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && len(x) == len(y) && sameMap(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return true
}
