package oracle

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Edit returns a copy of v, a value of s, with some of it changed, as an update or the next intent may have it:
// fields and items dropped, added and changed, at one or at many places, keys changed, items in another order and,
// when dup > 0, duplicated.
func (g *Gen) Edit(v any, s *spec.Schema, dup int) any {
	g.room = g.items
	return g.edit(runtime.DeepCopyJSONValue(v), s, dup)
}

// edit may change v.
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
	isDropped := g.Chance(3)
	for _, name := range names {
		sub, declared := s.Properties[name]
		if elem := elemOf(s); !declared && elem != nil {
			sub, declared = *elem, true
		}
		switch {
		case isDropped && g.Intn(3) > 0:
			drop(m, s, name)
		case declared && g.Chance(2):
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

func (g *Gen) editList(items []any, s *spec.Schema, dup int) []any {
	for range 1 + g.Intn(2) {
		places := g.places(len(items))
		switch g.Intn(8) {
		case 0, 1: // drop
			for _, i := range slices.Backward(places) {
				items = slices.Delete(items, i, i+1)
			}
		case 2: // change something in items, or drop it
			name, isDropped := "", false
			if names := sortedKeys(s.Items.Schema.Properties); len(names) > 0 {
				name, isDropped = names[g.Intn(len(names))], g.Chance(2)
			}
			for _, i := range places {
				m, isMap := items[i].(map[string]any)
				switch {
				case !isMap || name == "":
					items[i] = g.edit(items[i], s.Items.Schema, dup)
				case isDropped:
					drop(m, s.Items.Schema, name)
				default:
					m[name] = g.field(s.Items.Schema, name, dup)
				}
			}
		case 3: // change one item
			if len(places) > 0 {
				items[places[0]] = g.edit(items[places[0]], s.Items.Schema, dup)
			}
		case 4: // change keys
			for _, i := range places {
				items[i] = withKey(items[i], g.alike(s, g.Intn(200), 1)[0], s)
			}
		case 5: // duplicate
			for _, i := range places {
				items = slices.Insert(items, g.below(len(items)+1), runtime.DeepCopyJSONValue(items[i]))
			}
		case 6: // add
			n, _ := g.size()
			items = slices.Insert(items, g.below(len(items)+1), g.alike(s, g.Intn(200), max(n, 1))...)
		default:
			items = g.ordered(items)
		}
	}
	return g.distinct(items, s, dup)
}
