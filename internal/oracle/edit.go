package oracle

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Edit returns a copy of v, a value of s, with random changes, like the changes of an update or of the next intent: it
// drops, adds and changes fields and items in one or many places, changes keys, reorders items and, if dup > 0,
// duplicates items.
func (g *Gen) Edit(v any, s *spec.Schema, dup int) any {
	g.room = g.items
	return g.edit(runtime.DeepCopyJSONValue(v), s, dup)
}

// edit is Edit, but may change v.
func (g *Gen) edit(v any, s *spec.Schema, dup int) any {
	switch x := v.(type) {
	case map[string]any:
		if g.Intn(12) > 0 {
			g.editMap(x, s, dup)
			return x
		}
	case []any:
		if g.Intn(12) > 0 && s.Items != nil {
			return g.editList(x, s, dup)
		}
	}
	if g.Intn(3) > 0 {
		return v
	}
	return g.value(s, dup)
}

// editMap drops, changes and adds some entries.
func (g *Gen) editMap(m map[string]any, s *spec.Schema, dup int) {
	names := sortedKeys(m)
	if len(names) > 4 {
		some := []string{}
		for _, i := range g.places(len(names)) {
			some = append(some, names[i])
		}
		names = some
	}
	isDropped := g.Chance(6)
	for _, name := range names {
		sub, declared := s.Properties[name]
		if elem := elemOf(s); !declared && elem != nil {
			sub, declared = *elem, true
		}
		switch {
		case isDropped && g.Chance(2):
			drop(m, s, name)
		case declared && (isLarge(m[name]) || g.Chance(2)):
			m[name] = g.edit(m[name], &sub, dup)
		}
	}
	for _, name := range sortedKeys(s.Properties) {
		if v, ok := m[name]; !ok && g.Chance(4) || v == nil && slices.Contains(s.Required, name) {
			m[name] = g.field(s, name, dup)
		}
	}
	if elem := elemOf(s); elem != nil && g.Chance(4) {
		m[g.name()] = g.value(elem, dup)
	}
}

// isLarge reports whether v is a list that was made large on purpose.
func isLarge(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) > 4
	case map[string]any:
		return len(v) > 4
	}
	return false
}

func (g *Gen) editList(items []any, s *spec.Schema, dup int) []any {
	for range 1 + g.Intn(2) {
		places := g.places(len(items))
		switch g.Intn(10) {
		case 0, 1: // drop
			for _, i := range slices.Backward(places) {
				items = slices.Delete(items, i, i+1)
			}
		case 2, 3, 4: // change or drop a field of items
			g.editField(items, places, s.Items.Schema, dup)
		case 5: // change one item
			if len(places) > 0 {
				items[places[0]] = g.edit(items[places[0]], s.Items.Schema, dup)
			}
		case 6: // change keys
			for _, i := range places {
				items[i] = withKey(items[i], g.alike(s, g.Intn(200), 1)[0], s)
			}
		case 7: // duplicate
			for _, i := range places {
				items = slices.Insert(items, g.below(len(items)+1), runtime.DeepCopyJSONValue(items[i]))
			}
		case 8: // add
			n, _ := g.count()
			items = slices.Insert(items, g.below(len(items)+1), g.alike(s, g.Intn(200), max(n, 1))...)
		default:
			items = g.ordered(items)
		}
	}
	return g.distinct(items[:min(len(items), max(g.items, 64))], s, dup)
}

// editField drops or changes one field of all items at some places.
func (g *Gen) editField(items []any, places []int, s *spec.Schema, dup int) {
	if len(places) == 0 {
		return
	}
	first, _ := items[places[0]].(map[string]any)
	names := slices.DeleteFunc(sortedKeys(first), func(name string) bool {
		_, declared := s.Properties[name]
		return !declared || slices.Contains(s.Required, name)
	})
	name, isDropped := "", g.Chance(2)
	if len(names) > 0 {
		name = names[g.Intn(len(names))]
	}
	for _, i := range places {
		m, isMap := items[i].(map[string]any)
		switch {
		case !isMap || name == "":
			items[i] = g.edit(items[i], s, dup)
		case isDropped:
			delete(m, name)
		default:
			m[name] = g.field(s, name, dup)
		}
	}
}
