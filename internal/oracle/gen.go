package oracle

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Gen makes random things from a string of bytes; when they run out, it makes
// the simplest ones. A string of at most eight bytes is the seed of a longer one,
// so that a fuzzer that changes a bit comes to another world.
type Gen struct {
	data  []byte
	odd   bool // the words are odd, and clients do odd things
	nulls bool // nulls come up often
}

// NewGen returns a Gen over data.
func NewGen(data []byte) *Gen { return &Gen{data: expanded(data)} }

// NewOddGen returns a Gen over data of rarer things: names and texts that look like
// something else, one number in several Go types, managed fields that no server wrote.
func NewOddGen(data []byte) *Gen { return &Gen{data: expanded(data), odd: true} }

// expanded returns data, or what it is the seed of.
func expanded(data []byte) []byte {
	if len(data) == 0 || len(data) > 8 {
		return data
	}
	var seed [8]byte
	copy(seed[:], data)
	return Random(binary.LittleEndian.Uint64(seed[:]))
}

// Random returns 100 to 999 bytes, the same for the same seed: enough for a type and
// some writes.
func Random(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 100+r.IntN(900))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// Seeds returns the starts of a fuzzer, random bytes. The environment's SEEDS asks
// for others: SEEDS=1000:50000 for 50,000 worlds from the 1000th, each by its seed.
func Seeds() [][]byte {
	var out [][]byte
	var first, count uint64
	if _, err := fmt.Sscanf(os.Getenv("SEEDS"), "%d:%d", &first, &count); err == nil {
		for i := range count {
			out = append(out, binary.LittleEndian.AppendUint64(nil, (first+i)*0x9e3779b97f4a7c15))
		}
		return out
	}
	for i := range uint64(250) {
		out = append(out, Random(i))
	}
	return out
}

// Done reports whether the bytes have run out.
func (g *Gen) Done() bool { return len(g.data) == 0 }

// Intn returns a number from 0 up to n-1; 0 when the bytes have run out.
func (g *Gen) Intn(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	b := int(g.data[0])
	g.data = g.data[1:]
	return b % n
}

// Chance is true once in n times, and never when the bytes have run out.
func (g *Gen) Chance(n int) bool { return !g.Done() && g.Intn(n) == n-1 }

var (
	fieldNames = []string{"a", "b", "c", "spec", "items", "x/y"}
	keyNames   = []string{"name", "port", "proto"}
	texts      = []string{"", "a", "b", "<&>", "\"q\"", "1"}
	numbers    = []any{int64(0), int64(1), int64(-3), 1.5, float64(2)}

	oddNames   = []string{"a", "b", "", ".", "f:a", "é", "name"}
	oddTexts   = []string{"", "a", "\u00e9", "\u2028", "\x7f", "{\"a\":1}", "1", "\x01"}
	oddNumbers = []any{int64(0), int64(1), float64(1), int64(2), float64(2), 1.5, 0.1, int64(100_000), 1e21, float64(0)}
)

func (g *Gen) name() string {
	if g.odd {
		return oddNames[g.Intn(len(oddNames))]
	}
	return fieldNames[g.Intn(len(fieldNames))]
}

func (g *Gen) text() string {
	if g.odd {
		return oddTexts[g.Intn(len(oddTexts))]
	}
	return texts[g.Intn(len(texts))]
}

func (g *Gen) number() any {
	if g.odd {
		return oddNumbers[g.Intn(len(oddNumbers))]
	}
	return numbers[g.Intn(len(numbers))]
}

// Schema makes the schema of a value, at most depth levels deep.
func (g *Gen) Schema(depth int) spec.Schema {
	n := 10
	if depth <= 0 {
		n = 4
	}
	switch g.Intn(n) {
	case 0:
		return schemaOf("string")
	case 1:
		return schemaOf("integer")
	case 2:
		return schemaOf("boolean")
	case 3:
		return extended(spec.Schema{}, "x-kubernetes-int-or-string", true)
	case 4:
		s := schemaOf("object")
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: ptr(g.Schema(depth - 1))}
		return g.mapType(s)
	case 5:
		return g.mapType(g.Struct(depth))
	case 6:
		return listOf(g.Schema(depth-1), "atomic")
	case 7:
		if g.odd && g.Chance(3) {
			return listOf(extended(spec.Schema{}, "x-kubernetes-int-or-string", true), "set")
		}
		return listOf(g.scalar(), "set")
	case 8:
		return g.keyedList(depth)
	default:
		return extended(schemaOf("object"), "x-kubernetes-preserve-unknown-fields", true)
	}
}

// Struct makes the schema of a struct.
func (g *Gen) Struct(depth int) spec.Schema {
	s := schemaOf("object")
	s.Properties = map[string]spec.Schema{}
	for range 1 + g.Intn(4) {
		s.Properties[g.name()] = g.Schema(depth - 1)
	}
	if g.Chance(8) {
		s = extended(s, "x-kubernetes-preserve-unknown-fields", true)
	}
	return s
}

func (g *Gen) scalar() spec.Schema {
	return []spec.Schema{schemaOf("string"), schemaOf("integer"), schemaOf("boolean"), schemaOf("number")}[g.Intn(4)]
}

func (g *Gen) mapType(s spec.Schema) spec.Schema {
	switch g.Intn(4) {
	case 1:
		return extended(s, "x-kubernetes-map-type", "atomic")
	case 2:
		return extended(s, "x-kubernetes-map-type", "granular")
	}
	return s
}

func (g *Gen) keyedList(depth int) spec.Schema {
	item := g.Struct(depth - 1)
	if g.odd && g.Chance(4) {
		item = g.mapType(item)
	}
	var keys []any
	for i := range 1 + g.Intn(3) {
		key := g.scalar()
		if g.odd && g.Chance(4) {
			key = extended(spec.Schema{}, "x-kubernetes-int-or-string", true)
		}
		if (i > 0 || g.odd) && g.Chance(2) {
			key.Default = g.value(&key, 0)
		}
		item.Properties[keyNames[i]] = key
		keys = append(keys, keyNames[i])
	}
	list := listOf(item, "map")
	return extended(list, "x-kubernetes-list-map-keys", keys)
}

func schemaOf(t string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{t}}}
}

func listOf(item spec.Schema, listType string) spec.Schema {
	s := schemaOf("array")
	s.Items = &spec.SchemaOrArray{Schema: &item}
	return extended(s, "x-kubernetes-list-type", listType)
}

func extended(s spec.Schema, name string, v any) spec.Schema {
	extensions := spec.Extensions{name: v}
	for k, old := range s.Extensions {
		if k != name {
			extensions[k] = old
		}
	}
	s.Extensions = extensions
	return s
}

func ptr[T any](v T) *T { return &v }

// Retype returns s with the topology of some of it changed, as a new version of
// a type may: atomic lists and maps become granular and the other way round.
func (g *Gen) Retype(s spec.Schema) spec.Schema {
	if s.Properties != nil {
		properties := map[string]spec.Schema{}
		for _, name := range sortedKeys(s.Properties) {
			properties[name] = g.Retype(s.Properties[name])
		}
		s.Properties = properties
	}
	switch {
	case len(s.Type) == 0:
	case s.Type[0] == "object" && g.Chance(3):
		s = extended(s, "x-kubernetes-map-type", []any{"atomic", "granular"}[g.Intn(2)])
	case s.Type[0] == "array" && g.Chance(3):
		item := s.Items.Schema
		switch g.Intn(2) {
		case 0:
			s = extended(s, "x-kubernetes-list-type", "atomic")
		case 1:
			if _, hasKeys := s.Extensions["x-kubernetes-list-map-keys"]; hasKeys {
				s = extended(s, "x-kubernetes-list-type", "map")
			} else if len(item.Type) > 0 && item.Type[0] != "object" && item.Type[0] != "array" {
				s = extended(s, "x-kubernetes-list-type", "set")
			}
		}
	}
	return s
}

// value makes a value of a schema. Nulls, empty containers and, when dup > 0,
// duplicate items come up now and then.
func (g *Gen) value(s *spec.Schema, dup int) any {
	if g.Chance(25) || g.nulls && g.Chance(6) {
		return nil
	}
	kind := ""
	if len(s.Type) > 0 {
		kind = s.Type[0]
	}
	switch kind {
	case "string":
		return g.text()
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
	if g.odd && s.Extensions["x-kubernetes-int-or-string"] == true {
		return g.free(0) // which may be a key: upstream prints maps in it in any order
	}
	return g.free(2)
}

func (g *Gen) free(depth int) any {
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
			out[g.name()] = g.free(depth - 1)
		}
		return out
	default:
		out := []any{}
		for range g.Intn(3) {
			out = append(out, g.free(depth-1))
		}
		return out
	}
}

func (g *Gen) object(s *spec.Schema, dup int) any {
	out := map[string]any{}
	for _, name := range sortedKeys(s.Properties) {
		if g.Intn(3) > 0 {
			sub := s.Properties[name]
			out[name] = g.value(&sub, dup)
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		for range g.Intn(3) {
			out[g.name()] = g.value(s.AdditionalProperties.Schema, dup)
		}
	}
	if s.Extensions["x-kubernetes-preserve-unknown-fields"] == true {
		for range g.Intn(3) {
			name := g.name()
			if _, declared := s.Properties[name]; !declared {
				out[name] = g.free(2)
			}
		}
	}
	return out
}

func (g *Gen) list(s *spec.Schema, dup int) any {
	out := []any{}
	seen := map[string]bool{}
	keys, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	associative := s.Extensions["x-kubernetes-list-type"] != "atomic"
	for range g.Intn(5) {
		item := g.value(s.Items.Schema, dup)
		if !associative {
			out = append(out, item)
			continue
		}
		// A null item has no element; now and then one slips in all the same.
		if item == nil && !g.Chance(10) {
			continue
		}
		var id string
		if m, ok := item.(map[string]any); ok && len(keys) > 0 {
			g.fillKeys(m, s, keys)
			id = keyOf(m, s, keys)
		} else {
			id = fmt.Sprintf("%v", item)
		}
		if seen[id] && (dup == 0 || !g.Chance(dup)) {
			continue
		}
		seen[id] = true
		out = append(out, item)
	}
	return out
}

// fillKeys makes sure that an item mostly has its first key field, and no null
// among its keys.
func (g *Gen) fillKeys(m map[string]any, s *spec.Schema, keys []any) {
	for i, k := range keys {
		name := k.(string)
		if v, ok := m[name]; ok && v == nil {
			delete(m, name)
		}
		if _, ok := m[name]; !ok && i == 0 && !g.Chance(12) {
			sub := s.Items.Schema.Properties[name]
			if v := g.value(&sub, 0); v != nil {
				m[name] = v
			}
		}
	}
}

func keyOf(m map[string]any, s *spec.Schema, keys []any) string {
	id := ""
	for _, k := range keys {
		v, ok := m[k.(string)]
		if !ok {
			v = s.Items.Schema.Properties[k.(string)].Default
		}
		id += fmt.Sprintf("%v=%v;", k, v)
	}
	return id
}

// Mutate returns a copy of v, a value of s, with some of it changed, as an
// update may leave it.
func (g *Gen) Mutate(v any, s *spec.Schema) any {
	switch g.Intn(6) {
	case 0:
		return g.value(s, 3)
	case 1, 2:
		return runtime.DeepCopyJSONValue(v)
	}
	m, ok := v.(map[string]any)
	if !ok || s.Properties == nil {
		return runtime.DeepCopyJSONValue(v)
	}
	out := map[string]any{}
	for _, name := range sortedKeys(m) {
		sub, declared := s.Properties[name]
		switch {
		case g.Chance(6):
		case declared:
			out[name] = g.Mutate(m[name], &sub)
		default:
			out[name] = runtime.DeepCopyJSONValue(m[name])
		}
	}
	for _, name := range sortedKeys(s.Properties) {
		if _, ok := out[name]; !ok && g.Chance(4) {
			sub := s.Properties[name]
			out[name] = g.value(&sub, 3)
		}
	}
	return out
}
