package typed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
)

// canonicalType has one field for each feature of canonical semantics.
func canonicalType() *typed.Type {
	text := &typed.Type{Scalar: typed.String}
	quantity := &typed.Type{Scalar: typed.Untyped, Format: "quantity"}
	structOf := func(fields map[string]typed.Field) *typed.Type {
		return &typed.Type{Map: typed.NewMap(fields, nil)}
	}
	inner := structOf(
		map[string]typed.Field{"limits": {Type: &typed.Type{Map: typed.NewMap(nil, quantity)}}, "text": {Type: text}})
	item := structOf(map[string]typed.Field{"name": {Type: text}, "cpu": {Type: quantity}})
	return structOf(map[string]typed.Field{
		"cpu":       {Type: quantity},
		"at":        {Type: &typed.Type{Scalar: typed.Untyped, Format: "date-time"}},
		"text":      {Type: text},
		"list":      {Type: &typed.Type{List: typed.AtomicList(text)}},
		"amounts":   {Type: &typed.Type{List: typed.AtomicList(quantity)}},
		"items":     {Type: &typed.Type{List: typed.KeyedList(item, "name")}},
		"labels":    {Type: &typed.Type{Map: typed.NewMap(nil, text)}},
		"resources": {Type: inner, Default: map[string]any{}},
		"emptyDir":  {Type: inner},
		"sealed":    {Type: &typed.Type{Map: inner.Map.WithAtomic(true)}},
		"any":       {Type: typed.Deduced()},
		"preset":    {Type: inner, Default: map[string]any{"text": "x"}},
		"none":      {Type: &typed.Type{}},
		"bare":      {},
	})
}

// TestCanonical shows spec rule 11.1: values with the same meaning are equal in canonical semantics, in both
// directions, and differ in compatible semantics.
func TestCanonical(t *testing.T) {
	type m = map[string]any
	typ := canonicalType()
	for _, row := range []struct {
		name, why string
		a, b      m
		same      bool
	}{
		{"quantities", "1000m is 1", m{"cpu": "1000m"}, m{"cpu": "1"}, true},
		{"quantity and number", "a quantity may be a number", m{"cpu": "2"}, m{"cpu": int64(2)}, true},
		{"quantity and fraction", "or a fraction", m{"cpu": "500m"}, m{"cpu": 0.5}, true},
		{"other amount", "", m{"cpu": "1"}, m{"cpu": "2"}, false},
		{"no quantity", "what can't be read is equal to itself only", m{"cpu": "one"}, m{"cpu": "1"}, false},
		{"no quantity and nought", "", m{"cpu": "one"}, m{"cpu": "0"}, false},
		{"absurd quantity", "a long text is not read", m{"cpu": "1" + string(make([]byte, 100))}, m{"cpu": "1"}, false},
		{"instants", "one instant in two zones", m{"at": "2026-01-01T00:00:00Z"}, m{"at": "2026-01-01T01:00:00+01:00"}, true},
		{"other instant", "", m{"at": "2026-01-01T00:00:00Z"}, m{"at": "2026-01-01T00:00:01Z"}, false},
		{"no instant and the first", "", m{"at": "x"}, m{"at": "0001-01-01T00:00:00Z"}, false},
		{"no instant", "", m{"at": "x"}, m{"at": "y"}, false},
		{"texts", "a string without a format has no other meaning", m{"text": "1000m"}, m{"text": "1"}, false},
		{"empty list", "a list that is empty is as good as none", m{"list": []any{}}, m{}, true},
		{"null list", "so is a null", m{"list": nil}, m{}, true},
		{"null text", "a null that is no list or map is a value", m{"text": nil}, m{}, false},
		{"null map", "", m{"labels": nil}, m{}, true},
		{"null struct", "a null is as good as none where empty is", m{"emptyDir": nil}, m{}, false},
		{"null of anything", "what may be a scalar may be a null", m{"any": nil}, m{}, false},
		{"null of nothing", "a type without a shape says nothing of emptiness", m{"none": nil}, m{}, false},
		{"null without a type", "a field without a type says nothing either", m{"bare": nil}, m{}, false},
		{"list with an item", "", m{"list": []any{"a"}}, m{}, false},
		{"empty list for text", "which fits no type", m{"text": []any{}}, m{}, false},
		{"empty keyed list", "", m{"items": []any{}}, m{}, true},
		{"empty map", "a map with free keys that is empty is as good as none", m{"labels": m{}}, m{}, true},
		{"null and empty list", "what is as good as none is as good as all that is", m{"list": nil}, m{"list": []any{}},
			true},
		{"null and empty map", "", m{"labels": nil}, m{"labels": m{}}, true},
		{"null and empty list in an atomic struct", "", m{"sealed": m{"limits": nil}}, m{"sealed": m{"limits": m{}}}, true},
		{"null and empty optional struct", "one means nothing, the other that it is there", m{"emptyDir": nil},
			m{"emptyDir": m{}}, false},
		{"null and a list with an item", "", m{"list": nil}, m{"list": []any{"a"}}, false},
		{"defaulted struct", "its default is to be empty", m{"resources": m{}}, m{}, true},
		{"defaulted struct of empty things", "at any depth", m{"resources": m{"limits": m{}}}, m{}, true},
		{"filled struct", "", m{"resources": m{"text": "x"}}, m{}, false},
		{"struct with another default", "to be empty is not its default", m{"preset": m{}}, m{}, false},
		{"optional struct", "that it is there means something", m{"emptyDir": m{}}, m{}, false},
		{"atomic list", "leaves are looked into", m{"amounts": []any{"1", "2000m"}}, m{"amounts": []any{"1000m", "2"}}, true},
		{"atomic list, longer", "", m{"amounts": []any{"1"}}, m{"amounts": []any{"1", "2"}}, false},
		{"atomic struct", "", m{"sealed": m{"limits": m{"cpu": "1"}}},
			m{"sealed": m{"limits": m{"cpu": "1000m"}, "text": nil}}, false},
		{"atomic struct, same", "", m{"sealed": m{"limits": m{"cpu": "1"}}}, m{"sealed": m{"limits": m{"cpu": "1000m"}}},
			true},
		{"atomic struct of nothing", "", m{"sealed": m{"text": "x", "limits": m{}}}, m{"sealed": m{"text": "x"}}, true},
		{"atomic struct, other field", "", m{"sealed": m{"text": "x"}}, m{"sealed": m{"limits": m{"cpu": "1"}}}, false},
		{"items", "items meet by key, and their fields by meaning", m{"items": []any{m{"name": "a", "cpu": "1"}}},
			m{"items": []any{m{"name": "a", "cpu": "1000m"}}}, true},
		{"without a schema", "nothing is known of it", m{"any": m{"cpu": "1"}}, m{"any": m{"cpu": "1000m"}}, false},
		{"free key", "an entry with a free key is there on purpose", m{"any": m{"list": []any{}}}, m{"any": m{}}, false},
		{"other shapes", "", m{"any": "x"}, m{"any": m{}}, false},
		{"the same", "", m{"cpu": "1", "labels": m{"a": "b"}}, m{"cpu": "1", "labels": m{"a": "b"}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			canonical := typed.Canonical(nil)
			for _, pair := range [][2]m{{row.a, row.b}, {row.b, row.a}} {
				got := canonical.Compare(typ, pair[0], pair[1])
				require.Equal(t, row.same, got.IsUnchanged(), "%s: %v", row.why, got)
				require.Equal(t, row.same, canonical.Equal(typ, pair[0], pair[1]), row.why)
				compatible := (*typed.Semantics)(nil).Equal(typ, pair[0], pair[1])
				require.Equal(t, typed.Equal(pair[0], pair[1]), compatible)
				merged, err := canonical.Merge(typ, pair[0], pair[1], typed.Rules{})
				if typ.Validate(pair[1], typed.Rules{}) != nil {
					continue // a list in place of a text
				}
				require.NoError(t, err)
				if row.same {
					require.Equal(t, pair[0], merged.Value, "live's own words stay")
				}
				if !typed.Equal(row.a, row.b) {
					require.False(t, typ.Compare(pair[0], pair[1]).IsUnchanged(), "Compatible tells them apart")
				}
			}
		})
	}
}

// TestCanonicalMerge: if the meaning differs, the intent's value is used, without its fields that are treated as
// missing.
func TestCanonicalMerge(t *testing.T) {
	type m = map[string]any
	for _, row := range []struct {
		name, why           string
		live, applied, want m
	}{
		{"other amount", "", m{"cpu": "1"}, m{"cpu": "2"}, m{"cpu": "2"}},
		{"into an empty struct", "", m{"resources": m{}}, m{"resources": m{"limits": m{}, "text": "x"}},
			m{"resources": m{"text": "x"}}},
		{"into nothing", "", m{}, m{"list": []any{}, "text": "x"}, m{"text": "x"}},
	} {
		got, err := typed.Canonical(nil).Merge(canonicalType(), row.live, row.applied, typed.Rules{})
		require.NoError(t, err)
		require.Equal(t, any(row.want), got.Value, "%s: %s", row.name, row.why)
	}
}

// TestPredicate passes an equal function that knows more than the schema.
func TestPredicate(t *testing.T) {
	typ := canonicalType()
	text := typ.Map.Field("text").Type
	s := typed.Canonical(func(of *typed.Type, a, b any) bool {
		x, ok1 := a.(string)
		y, ok2 := b.(string)
		return of == text && ok1 && ok2 && len(x) == len(y)
	})
	require.True(t, s.Compare(typ, map[string]any{"text": "ab"}, map[string]any{"text": "cd"}).IsUnchanged())
	require.False(t, s.Compare(typ, map[string]any{"text": "ab"}, map[string]any{"text": "c"}).IsUnchanged())
	require.False(t, s.Compare(typ, map[string]any{"cpu": "ab"}, map[string]any{"cpu": "cd"}).IsUnchanged())
}

// TestDropUnknown shows which undeclared fields are dropped.
func TestDropUnknown(t *testing.T) {
	type m = map[string]any
	typ := canonicalType()
	items := []any{m{"name": "a", "bad": m{}}, m{"name": "b", "bad": m{}}, m{"name": "c"}}
	v := m{"text": "x", "nope": int64(1), "items": items,
		"list": []any{"a"}, "any": m{"all": "fine"}, "sealed": m{"odd": "x"}}
	got := typ.DropUnknown(v, nil)
	require.Equal(t, m{"text": "x", "items": []any{m{"name": "a"}, m{"name": "b"}, m{"name": "c"}},
		"list": []any{"a"}, "any": m{"all": "fine"}, "sealed": m{}}, got)
	require.Equal(t, int64(1), v["nope"], "the value itself is left alone")
	require.Contains(t, items[0], "bad")

	less := typ.DropUnknown(m{"nope": nil, "items": []any{m{"bad": "x"}}}, nil)
	require.Equal(t, m{"items": []any{m{}}}, less, "nulls too")
	sealed := m{"sealed": m{"nope": "x"}, "nope": "x"}
	require.Equal(t, m{"sealed": m{"nope": "x"}},
		typ.DropUnknown(sealed, m{"sealed": m{"nope": "x"}, "nope": "x"}),
		"an atomic map that is live already is kept, and no other")
	require.Equal(t, m{"sealed": m{}}, typ.DropUnknown(sealed, m{"sealed": m{"nope": "y"}}))

	again := typ.DropUnknown(got, nil)
	require.Equal(t, fmt.Sprintf("%p", got), fmt.Sprintf("%p", again), "what has nothing to drop is itself")
}

// TestDropUnknownLimits: DropUnknown keeps values beyond a limit; the next operation on them returns an error.
func TestDropUnknownLimits(t *testing.T) {
	typ := &typed.Type{}
	typ.Map = typed.NewMap(map[string]typed.Field{
		"below": {Type: typ}, "list": {Type: &typed.Type{List: typed.AtomicList(typ)}},
	}, nil)
	deep, wide := map[string]any{"nope": "x"}, map[string]any{}
	for range limits.MaxDepth {
		deep = map[string]any{"below": deep}
	}
	for range 100 { // 2^100 values
		wide = map[string]any{"list": []any{wide, wide}}
	}
	require.NotEqual(t, deep, typ.DropUnknown(deep, nil))
	for _, v := range []map[string]any{{"below": deep}, wide} {
		require.Equal(t, fmt.Sprintf("%p", v), fmt.Sprintf("%p", typ.DropUnknown(v, nil)))
	}
}
