package gostruct_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/gostruct"
)

// selves returns structs in each other, n deep.
func selves(n int) *odd {
	out := &odd{}
	for range n - 1 {
		out = &odd{Self: out}
	}
	return out
}

type refusing struct{ P *int }

func (r refusing) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// lists returns lists in each other, n deep.
func lists(n int) any {
	v := any("x")
	for range n {
		v = []any{v}
	}
	return v
}

// TestEqual compares structs that differ in one thing, at an address, in a list, and in a map, where they have no
// address.
func TestEqual(t *testing.T) {
	leaves, bytes, texts := []Leaf{{On: true}, {Off: true}}, []byte("ab"), map[string]string{"a": "x"}
	one := byMarshal{"1"}
	type bad struct {
		Bad   failing    `json:"bad"`
		Short maybeShort `json:"short"`
		Odd   byMarshal  `json:"odd"`
	}
	for _, row := range []struct {
		name, why string
		a, b      any
		want      bool
	}{
		{"nothing", "", odd{}, odd{}, true},
		{"one slice", "", odd{Leaves: leaves}, odd{Leaves: leaves}, true},
		{"a part of a slice", "it begins at the same place", odd{Leaves: leaves[:1]}, odd{Leaves: leaves}, false},
		{"bytes", "", odd{Bytes: bytes}, odd{Bytes: bytes}, true},
		{"a part of bytes", "it begins at the same place", odd{Plain: bytes[:1]}, odd{Plain: bytes}, false},
		{"one map", "", odd{Labels: texts}, odd{Labels: texts}, true},
		{"equal maps", "", odd{Labels: texts}, odd{Labels: map[string]string{"a": "x"}}, true},
		{"another text", "", odd{Labels: texts}, odd{Labels: map[string]string{"a": "y"}}, false},
		{"another name", "", odd{Labels: texts}, odd{Labels: map[string]string{"b": "x"}}, false},
		{"maps in maps", "one has an entry more", odd{Deep: map[string]map[string][]*Leaf{"a": {}}},
			odd{Deep: map[string]map[string][]*Leaf{"a": {"b": nil}}}, false},
		{"texts in maps", "", odd{Any: map[string]any{"a": "x"}}, odd{Any: map[string]any{"a": "y"}}, false},
		{"one pointer", "", odd{Pointers: []*Leaf{{}, nil}}, odd{Pointers: []*Leaf{{}, nil}}, true},
		{"a nil pointer", "null is no empty struct", odd{Pointers: []*Leaf{{}}}, odd{Pointers: []*Leaf{nil}}, false},
		{"bool", "", odd{Behind: Behind{Note: &Leaf{Off: true}}}, odd{Behind: Behind{Note: &Leaf{}}}, false},
		{"int8", "", odd{numbers: numbers{I8: 1}}, odd{numbers: numbers{I8: 2}}, false},
		{"int16", "they differ in the high byte", odd{numbers: numbers{I16: 1}}, odd{numbers: numbers{I16: 257}}, false},
		{"int16s", "they differ in the high byte", odd{Shorts: []int16{1}}, odd{Shorts: []int16{257}}, false},
		{"int32", "as above", odd{numbers: numbers{I32: 1}}, odd{numbers: numbers{I32: 1<<16 + 1}}, false},
		{"int64", "as above", odd{numbers: numbers{I64: 1}}, odd{numbers: numbers{I64: 1<<32 + 1}}, false},
		{"uint64", "", odd{numbers: numbers{U64: math.MaxInt64}}, odd{numbers: numbers{U64: math.MaxInt64}}, true},
		{"large uint64", "it has no JSON value", odd{numbers: numbers{U64: 1 << 63}},
			odd{numbers: numbers{U64: 1 << 63}}, false},
		{"uint64 and another", "", odd{numbers: numbers{U64: 1}}, odd{numbers: numbers{U64: 2}}, false},
		{"null and a value", "", odd{Any: nil}, odd{Any: "a"}, false},
		{"numbers of two types", "", odd{Any: int64(1)}, odd{Any: 1.0}, true},
		{"marshals", "", bad{Odd: byMarshal{`{"a": 1}`}}, bad{Odd: byMarshal{`{"a":1}`}}, true},
		{"marshals to another value", "", bad{Odd: byMarshal{`{"a":1}`}}, bad{Odd: byMarshal{`{"a":2}`}}, false},
		{"marshals to no JSON", "it is not asked for the JSON of equal Go values", bad{Odd: byMarshal{"{"}},
			bad{Odd: byMarshal{"{"}}, true},
		{"marshal to no JSON", "", bad{Odd: byMarshal{"{"}}, bad{Odd: byMarshal{"[ "}}, false},
		{"one marshals to no JSON", "", bad{Odd: byMarshal{"{"}}, bad{Odd: byMarshal{"{}"}}, false},
		{"one does not marshal", "", bad{failing{}, maybeShort{}, one}, bad{failing{true}, maybeShort{}, one}, false},
		{"does not marshal", "", struct{ R refusing }{refusing{ptr(1)}}, struct{ R refusing }{refusing{ptr(1)}}, false},
		{"one does not convert", "", bad{failing{}, maybeShort{true}, one}, bad{failing{}, maybeShort{}, one}, false},
		{"converts", "", bad{failing{}, maybeShort{}, one}, bad{failing{}, maybeShort{}, one}, true},
		{"as deep as may be", "", *selves(gostruct.MaxDepth - 2), *selves(gostruct.MaxDepth - 2), true},
		{"lists in lists", "", odd{Any: lists(900)}, odd{Any: lists(900)}, true},
		{"lists in lists, too deep", "", odd{Any: lists(1002)}, odd{Any: lists(1002)}, false},
		{"too deep", "", *selves(gostruct.MaxDepth + 2), *selves(gostruct.MaxDepth + 2), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			for where, pair := range map[string][2]any{
				"at an address": {&struct{ X any }{addressed(row.a)}, &struct{ X any }{addressed(row.b)}},
				"in a list":     {&struct{ L []any }{[]any{row.a}}, &struct{ L []any }{[]any{row.b}}},
				"in a map": {&struct{ M map[string]any }{map[string]any{"x": row.a}},
					&struct{ M map[string]any }{map[string]any{"x": row.b}}},
			} {
				a, err := gostruct.Of(pair[0])
				require.NoError(t, err)
				b, err := gostruct.Of(pair[1])
				require.NoError(t, err)
				require.Equal(t, row.want, gostruct.EqualJSON(a, b), "%s: %s", where, row.why)
				require.Equal(t, row.want, gostruct.EqualJSON(b, a), "%s: %s", where, row.why)
			}
			a, b := addressed(row.a), addressed(row.b)
			require.Equal(t, row.want, gostruct.EqualJSON(atAddress(a), inMap(b)), "one has an address: %s", row.why)
			require.Equal(t, row.want, gostruct.EqualJSON(inMap(a), atAddress(b)), "one has an address: %s", row.why)
		})
	}
}

// addressed returns a pointer to a copy of v.
func addressed(v any) any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}

// TestPairsOfScalars: Pairs calls for each field that differs, of every kind that it compares in Go.
func TestPairsOfScalars(t *testing.T) {
	leaves := []Leaf{{}, {}}
	a := &odd{numbers: numbers{I: 1, I8: 1, I16: 1, I32: 1, I64: 1}, Behind: Behind{Text: "a"}, Leaves: leaves}
	b := &odd{numbers: numbers{I: 2, I8: 2, I16: 257, I32: 2, I64: 2}, Behind: Behind{Text: "b"}, Leaves: leaves[:1]}
	a.Bytes, b.Bytes = []byte("ab"), []byte("ac")
	for _, row := range []struct {
		a, b any
		want []string
	}{
		{a, b, []string{"bytes", "i", "i16", "i32", "i64", "i8", "leaves", "text"}},
		{&Leaf{On: true, Off: true, Name: "a"}, &Leaf{On: true, Off: false, Name: "a"}, []string{"off"}},
		{&Leaf{On: true}, &Leaf{}, []string{"on"}},
		{&odd{Bytes: a.Bytes}, &odd{Bytes: a.Bytes[:1]}, []string{"bytes"}},
		{&odd{Leaves: leaves}, &odd{Leaves: leaves}, nil},
	} {
		for _, node := range []func(v any) gostruct.Node{atAddress, inMap} {
			var got []string
			require.True(t, node(row.a).Pairs(node(row.b), func(name string, a, b any, inA, inB bool) {
				l, isNode := a.(gostruct.Node)
				if !isNode || !gostruct.EqualJSON(l, b) { // a container may be called for though it is equal
					got = append(got, name)
				}
			}))
			require.ElementsMatch(t, row.want, got)
			tree, err := node(row.a).Tree()
			require.NoError(t, err)
			require.Equal(t, len(tree.(map[string]any)), node(row.a).Len())
		}
	}
}

// atAddress returns the node of a struct that v points to.
func atAddress(v any) gostruct.Node {
	n, err := gostruct.Of(v)
	if err != nil {
		panic(err)
	}
	return n
}

// inMap returns the node of a copy of that struct, in a map: it has no address.
func inMap(v any) gostruct.Node {
	x := reflect.ValueOf(v).Elem().Interface()
	entries, _ := atAddress(&struct{ M map[string]any }{map[string]any{"x": x}}).Get("M")
	n, _ := entries.(gostruct.Node).Get("x")
	return n.(gostruct.Node)
}

// TestEqualTrees compares plain trees, and Go structs with plain trees: a value of another kind is another value, also
// if both are empty.
func TestEqualTrees(t *testing.T) {
	type m = map[string]any
	type empties struct {
		Text  string         `json:"text"`
		On    bool           `json:"on"`
		Count int            `json:"count"`
		Map   map[string]any `json:"map"`
		List  []any          `json:"list"`
		Below struct {
			Text string `json:"text,omitempty"`
		} `json:"below"`
		Null *Leaf `json:"null"`
	}
	node := func(v any) any { return atAddress(v) }
	all := m{"text": "", "on": false, "count": int64(0), "map": m{}, "list": []any{}, "below": m{}, "null": nil}
	without := func(name, other string, v any) m {
		out := m{}
		for k, entry := range all {
			if k != name {
				out[k] = entry
			}
		}
		out[other] = v
		return out
	}
	empty := node(&empties{Map: m{}, List: []any{}})
	for i, row := range []struct {
		a, b any
		want bool
	}{
		{m{"a": int64(1)}, m{"a": int64(1)}, true},
		{m{"a": int64(1)}, m{"a": int64(2)}, false},
		{m{"a": nil}, m{"b": nil}, false},
		{m{"a": nil}, m{}, false},
		{m{}, nil, false},
		{m{}, []any{}, false},
		{[]any{}, m{}, false},
		{[]any{}, nil, false},
		{[]any{int64(1)}, []any{int64(1)}, true},
		{[]any{int64(1)}, []any{int64(2)}, false},
		{[]any{int64(1)}, []any{}, false},
		{"", nil, false},
		{nil, "", false},
		{false, nil, false},
		{true, false, false},
		{"", int64(0), false},
		{int64(0), "", false},
		{int64(0), nil, false},
		{int64(1), int32(1), true},
		{int64(1), 1.0, true},
		{1.5, int64(1), false},
		{int64(1<<53 + 1), 1 << 53, false}, // which are one float64
		{1 << 53, int64(1<<53 + 1), false},
		{uint64(math.MaxUint64), int64(-1), false}, // which are the same bits
		{uint64(math.MaxInt64), int64(math.MaxInt64), true},
		{uint64(math.MaxInt64), int64(math.MaxInt64 - 1), false}, // which are one float64
		{empty, all, true},
		{empty, nil, false},
		{empty, without("text", "text", nil), false},
		{empty, without("on", "on", nil), false},
		{empty, without("count", "count", nil), false},
		{empty, without("map", "map", nil), false},
		{empty, without("map", "map", []any{}), false},
		{empty, without("list", "list", nil), false},
		{empty, without("list", "list", m{}), false},
		{empty, without("below", "below", nil), false},
		{empty, without("null", "other", nil), false}, // as many entries, of another name
		{node(&empties{Map: m{"a": nil}}), without("list", "map", m{"b": nil}), false},
		{node(&struct{ M map[string]*Leaf }{map[string]*Leaf{"a": nil}}), m{"M": m{"b": nil}}, false},
		{node(&struct{ M map[string]*Leaf }{map[string]*Leaf{"a": nil}}), m{"M": m{"a": nil}}, true},
		{node(&struct{ U uint64 }{1 << 63}), m{"U": nil}, false},   // it has no JSON value
		{node(&odd{Any: lists(900)}), m{"any": lists(900)}, false}, // it has other fields
		{node(&struct{ Any any }{lists(900)}), m{"Any": lists(900)}, true},
		{node(&struct{ Any any }{lists(1002)}), m{"Any": lists(1002)}, false},
		{node(selves(gostruct.MaxDepth - 2)), must(treeOf(selves(gostruct.MaxDepth - 2))), true},
	} {
		require.Equal(t, row.want, gostruct.EqualJSON(row.a, row.b), "%d: %v %v", i, row.a, row.b)
		require.Equal(t, row.want, gostruct.EqualJSON(row.b, row.a), "%d: %v %v", i, row.b, row.a)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestEqualErrors: what has no JSON value equals nothing, not even the null or zero that it would be read as.
func TestEqualErrors(t *testing.T) {
	type converted struct{ A byMarshal }
	bad, null := nodeOf(t, &converted{byMarshal{"{"}}), nodeOf(t, &converted{byMarshal{"null"}})
	require.False(t, gostruct.EqualJSON(bad, null))
	require.False(t, gostruct.EqualJSON(null, bad))
	require.True(t, gostruct.EqualJSON(null, null))
	type holder struct{ A any }
	zero := map[string]any{"A": int64(0)}
	for _, v := range []any{make(chan int), uint64(math.MaxUint64), math.NaN(), map[int]int{}, errors.New("no")} {
		n := nodeOf(t, &holder{v})
		require.False(t, gostruct.EqualJSON(n, zero), "%T", v)
		require.False(t, gostruct.EqualJSON(n, map[string]any{"A": nil}), "%T", v)
		require.False(t, gostruct.EqualJSON(map[string]any{"A": v}, zero), "%T", v)
		require.False(t, gostruct.EqualJSON(zero, map[string]any{"A": v}), "%T", v)
	}
	large := nodeOf(t, &struct{ A uint64 }{math.MaxUint64})
	require.False(t, gostruct.EqualJSON(large, zero))
}
