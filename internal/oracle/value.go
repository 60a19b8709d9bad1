package oracle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Value makes a value of a schema. Sometimes it contains nulls, empty containers and, if dup > 0, duplicate items, once
// in dup times.
func (g *Gen) Value(s *spec.Schema, dup int) any {
	g.room = g.items
	return g.value(s, dup)
}

func (g *Gen) value(s *spec.Schema, dup int) any {
	if !g.strict && (g.Chance(25) || g.nulls && g.Chance(6)) {
		return nil
	}
	if n := len(s.Enum); n > 0 {
		return s.Enum[g.Intn(n)]
	}
	switch typeOf(s) {
	case "string":
		if t := g.text(); t != "" || s.MinLength == nil {
			return t
		}
		return "a"
	case "integer":
		if g.odd && g.Chance(4) {
			return float64(g.Intn(3))
		}
		return int64(g.Intn(3))
	case "number":
		return g.number()
	case "boolean":
		return g.Intn(2) == 1
	case "array":
		return g.list(s, dup)
	case "object":
		return g.object(s, dup)
	}
	if (g.odd || g.Validated) && s.Extensions["x-kubernetes-int-or-string"] == true {
		return g.Free(0) // the value may be a key, and upstream prints maps in keys in random order
	}
	return g.Free(2)
}

func typeOf(s *spec.Schema) string {
	if len(s.Type) == 0 {
		return ""
	}
	return s.Type[0]
}

// Free makes a value without a schema, with at most depth levels.
func (g *Gen) Free(depth int) any {
	n := 3
	if depth > 0 {
		n = 5
	}
	switch g.Intn(n) {
	case 0:
		return g.text()
	case 1:
		return g.number()
	case 2:
		return nil
	case 3:
		out := map[string]any{}
		for range g.Intn(3) {
			out[g.name()] = g.Free(depth - 1)
		}
		return out
	default:
		out := []any{}
		for range g.Intn(3) {
			out = append(out, g.Free(depth-1))
		}
		return out
	}
}

// count returns the number of items of a list or map, and whether the container is large.
func (g *Gen) count() (n int, isLarge bool) {
	if g.room < 5 || !g.Chance(2) {
		return g.Intn(4), false
	}
	if g.size == 0 || g.Chance(4) {
		g.size = g.sizes[g.Intn(len(g.sizes))]
	}
	n = min(g.size, g.room)
	g.room -= n
	return n, true
}

// template makes the value that n items copy. It contains large lists only if there is room.
func (g *Gen) template(s *spec.Schema, n int) any {
	room := g.room
	g.room = room / n
	defer func() { g.room = room }()
	return g.value(s, 0)
}

func (g *Gen) object(s *spec.Schema, dup int) any {
	out := map[string]any{}
	for _, name := range sortedKeys(s.Properties) {
		if slices.Contains(s.Required, name) || g.Intn(3) > 0 {
			out[name] = g.field(s, name, dup)
		}
	}
	if elem := elemOf(s); elem != nil {
		n, isLarge := g.count()
		if isLarge {
			entry := g.template(elem, n)
			for i := range n {
				out[fmt.Sprintf("n%03d", i)] = runtime.DeepCopyJSONValue(entry)
			}
			n = 2
		}
		for range n {
			out[g.name()] = g.value(elem, dup)
		}
	}
	if s.Extensions["x-kubernetes-preserve-unknown-fields"] == true {
		for range g.Intn(3) {
			name := g.name()
			if _, declared := s.Properties[name]; !declared {
				out[name] = g.Free(2)
			}
		}
	}
	return out
}

// field makes the value of a declared field, which is not null if it is required.
func (g *Gen) field(s *spec.Schema, name string, dup int) any {
	sub := s.Properties[name]
	v := g.value(&sub, dup)
	if v == nil && slices.Contains(s.Required, name) {
		return scalarOf(&sub, 0, "i%03d")
	}
	return v
}

// drop drops a field, unless it is required.
func drop(m map[string]any, s *spec.Schema, name string) {
	if !slices.Contains(s.Required, name) {
		delete(m, name)
	}
}

// elemOf returns the schema of a map's entries; nil if s is not a map.
func elemOf(s *spec.Schema) *spec.Schema {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

func (g *Gen) list(s *spec.Schema, dup int) any {
	out := []any{}
	n, isLarge := g.count()
	if isLarge {
		out = g.alike(s, 0, n)
		for _, i := range g.places(n) {
			if g.Chance(2) {
				out[i] = withKey(g.value(s.Items.Schema, dup), out[i], s)
			}
		}
		if dup > 0 && g.Chance(3) {
			for range 1 + g.Intn(12) {
				i := g.below(n)
				out[i] = withKey(out[i], out[g.below(n)], s)
			}
		}
		return g.ordered(g.distinct(out, s, dup))
	}
	for range n {
		item := g.value(s.Items.Schema, dup)
		if m, ok := item.(map[string]any); ok {
			g.fillKeys(m, s)
		}
		out = append(out, item)
	}
	return g.distinct(out, s, dup)
}

// alike makes n items that differ only in their keys, starting with item number first.
func (g *Gen) alike(s *spec.Schema, first, n int) []any {
	template := g.template(s.Items.Schema, n)
	format := []string{"i%03d", "%d"}[g.Intn(2)]
	radix := []int{7, 1 << 16}[g.Intn(2)] // for all keys except the last
	names := keysOf(s)
	out := make([]any, n)
	for i := range out {
		number := first + i
		out[i] = runtime.DeepCopyJSONValue(template)
		if len(names) == 0 {
			if isAssociative(s) {
				out[i] = scalarOf(s.Items.Schema, number, format)
			}
			continue
		}
		m, ok := out[i].(map[string]any)
		if !ok {
			m = map[string]any{}
		}
		for _, name := range names {
			sub := s.Items.Schema.Properties[name]
			digit, rest := number%radix, number/radix
			if name == names[len(names)-1] {
				digit = number
			} else if typeOf(&sub) == "boolean" {
				digit, rest = number%2, number/2
			}
			m[name], number = scalarOf(&sub, digit, format), rest
		}
		out[i] = m
	}
	return out
}

// scalarOf returns the i-th value of a scalar's schema.
func scalarOf(s *spec.Schema, i int, format string) any {
	if n := len(s.Enum); n > 0 {
		return s.Enum[i%n]
	}
	switch typeOf(s) {
	case "boolean":
		return i%2 == 1
	case "integer", "number":
		return int64(i)
	}
	return fmt.Sprintf(format, i)
}

func isAssociative(s *spec.Schema) bool {
	listType := s.Extensions["x-kubernetes-list-type"]
	return listType == "set" || listType == "map"
}

// keysOf returns the names of the key fields of a list's items, if any.
func keysOf(s *spec.Schema) (out []string) {
	keys, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	if isAssociative(s) {
		for _, k := range keys {
			out = append(out, k.(string))
		}
	}
	return out
}

// withKey returns an item with the key of another item.
func withKey(item, other any, s *spec.Schema) any {
	to, ok := item.(map[string]any)
	from, isMap := other.(map[string]any)
	if !ok || !isMap {
		return other
	}
	for _, k := range keysOf(s) {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
	return to
}

// distinct returns the items with distinct keys; once in dup times on average, a duplicate stays.
func (g *Gen) distinct(items []any, s *spec.Schema, dup int) []any {
	if !isAssociative(s) {
		return items
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(items, func(item any) bool {
		// A null item has no element; sometimes one is kept anyway.
		if item == nil {
			return g.Validated || !g.Chance(10)
		}
		id := keyOf(item, s)
		if seen[id] && (dup == 0 || !g.Chance(dup)) {
			return true
		}
		seen[id] = true
		return false
	})
}

// fillKeys ensures that an item usually has its first key field, and has no null among its key fields.
func (g *Gen) fillKeys(m map[string]any, s *spec.Schema) {
	for i, name := range keysOf(s) {
		if v, ok := m[name]; ok && v == nil {
			delete(m, name)
		}
		if _, ok := m[name]; !ok && i == 0 && !g.Chance(12) {
			if v := g.field(s.Items.Schema, name, 0); v != nil {
				m[name] = v
			}
		}
	}
}

// keyOf returns a text that distinguishes items with different keys.
func keyOf(item any, s *spec.Schema) string {
	m, ok := item.(map[string]any)
	names := keysOf(s)
	if !ok || len(names) == 0 {
		return fmt.Sprint(item)
	}
	id := ""
	for _, k := range names {
		v, ok := m[k]
		if !ok {
			v = s.Items.Schema.Properties[k].Default
		}
		id += fmt.Sprintf("%v=%v;", k, v)
	}
	return id
}

// ordered returns the items in the same or in another order.
func (g *Gen) ordered(items []any) []any {
	n := len(items)
	switch g.Intn(7) {
	case 1:
		slices.Reverse(items)
	case 2: // rotated
		i := g.below(n)
		items = append(slices.Clip(items[i:]), items[:i]...) // not nil, which would not be JSON
	case 3: // interleaved
		half := (n + 1) / 2
		out := make([]any, 0, n)
		for i := range half {
			if out = append(out, items[i]); half+i < n {
				out = append(out, items[half+i])
			}
		}
		items = out
	case 4: // shuffled
		r := g.below(1 << 16)
		for i := range items {
			r = (r*75 + 74) % 65537
			j := r % (i + 1)
			items[i], items[j] = items[j], items[i]
		}
	case 5: // one moved
		if n > 0 {
			from := g.below(n)
			item := items[from]
			items = slices.Insert(slices.Delete(items, from, from+1), g.below(n), item)
		}
	}
	return items
}

// places returns some of n positions, in order: one, a run, every k-th, all, or a few.
func (g *Gen) places(n int) (out []int) {
	if n == 0 {
		return nil
	}
	first, step, end := g.below(n), 1, n
	switch g.Intn(6) {
	case 0:
		end = first + 1
	case 1:
		end = min(n, first+g.below(n)+1)
	case 2:
		step = 2 + g.Intn(9)
	case 3:
		first = 0
	case 4:
		first = n - 1
	default:
		for range 1 + g.Intn(20) {
			out = append(out, g.below(n))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for i := first; i < end; i += step {
		out = append(out, i)
	}
	return out
}
