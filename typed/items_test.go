package typed_test

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
)

// TestItems shows which items of a set and of a keyed list can be selected (spec rules 3.4 and 3.5), by the errors of
// Validate.
func TestItems(t *testing.T) {
	type m = map[string]any
	scalars := setOf(&typed.Type{Scalar: typed.Untyped})
	keyed := &typed.Type{List: typed.KeyedList(typed.Deduced(), "k")}
	for _, row := range []struct {
		name, why string
		typ       *typed.Type
		item      any
		want      string // expected error; empty if there is none
	}{
		{"text", "", scalars, "a", ""},
		{"number", "", scalars, 1.5, ""},
		{"boolean", "", scalars, false, ""},
		{"null", "", scalars, nil, "an item of a set must be a scalar, got null"},
		{"map", "", scalars, m{}, "an item of a set must be a scalar, got a map"},
		{"Go value", "what is no JSON", scalars, struct{}{}, "an item of a set must be a scalar, got a Go struct {}"},
		{"infinity", "JSON has no such number", scalars, math.Inf(1), "a number in a key or set must be finite"},
		{"not a number", "", scalars, math.NaN(), "a number in a key or set must be finite"},
		{"infinity of half the size", "", scalars, float32(math.Inf(-1)), "a number in a key or set must be finite"},
		{"not a number of half the size", "", scalars, float32(math.NaN()), "a number in a key or set must be finite"},
		{"half the size", "", scalars, float32(1.5), ""},
		{"long text", "", scalars, strings.Repeat("x", limits.MaxElement+1), "a text of 262145 bytes"},
		{"key", "", keyed, m{"k": "a"}, ""},
		{"null key", "a null is a value", keyed, m{"k": nil}, ""},
		{"key that is a map", "upstream has them too", keyed, m{"k": m{"a": []any{"b", int64(1)}}}, ""},
		{"infinite key", "", keyed, m{"k": math.Inf(1)}, `key field "k": a number in a key or set must be finite`},
		{"large map of small ones as key", "and how many values there are", keyed,
			m{"k": []any{m{"a": make([]any, limits.MaxElement)}}}, "a value in a key of more than 262144 bytes"},
		{"no key", "", keyed, m{"x": "a"}, `an item of a keyed list must have one of its key fields ["k"]`},
		{"no map", "", keyed, "a", `an item of a keyed list must be a map, got "a"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.typ.Validate([]any{row.item}, typed.Rules{AllowUnknown: true})
			if row.want == "" {
				require.NoError(t, err, row.why)
				require.Len(t, lines(row.typ.FieldSet([]any{row.item, row.item})), 1, "twice it is one item")
				return
			}
			require.ErrorContains(t, err, row.want, row.why)
			require.Empty(t, lines(row.typ.FieldSet([]any{row.item})), "left out")
		})
	}
	// The only value of a type without a shape is null.
	none := &typed.Type{Map: typed.NewMap(nil, &typed.Type{})}
	require.NoError(t, none.Validate(m{"a": nil}, typed.Rules{}))
	require.ErrorContains(t, none.Validate(m{"a": "x"}, typed.Rules{}), `expected no value, got "x"`)
	require.Empty(t, lines(none.FieldSet(m{"b": m{}}).Difference(set(t, `{f:b: {}}`))))
}

// TestCanonicalOddities compares values in canonical semantics that do not fit their type. Live objects may have such
// values.
func TestCanonicalOddities(t *testing.T) {
	type m = map[string]any
	typ := canonicalType()
	fields := maps.Collect(typ.Map.Fields())
	fields["whole"] = typed.Field{Type: &typed.Type{List: typed.AtomicList(typ.Map.Field("sealed").Type)}}
	fields["odd"] = typed.Field{
		Type: &typed.Type{
			Map: typed.NewMap(map[string]typed.Field{"q": typ.Map.Field("cpu"), "t": typ.Map.Field("at"),
				"none": {Type: str, Default: m{}}}, nil).WithAtomic(true)}}
	typ.Map = typed.NewMap(fields, nil)
	for _, row := range []struct {
		name, why string
		a, b      m
		same      bool
	}{
		{"lists for a quantity", "what has no shape of its type is told by what it is",
			m{"odd": m{"q": []any{"1"}, "x": "a"}}, m{"odd": m{"q": []any{"1"}, "x": "b"}}, false},
		{"equal lists for a quantity", "", m{"odd": m{"q": []any{"1"}, "t": "2026-01-01T00:00:00Z"}},
			m{"odd": m{"q": []any{"1"}, "t": "2026-01-01T01:00:00+01:00"}}, true},
		{"equal maps for a quantity", "", m{"odd": m{"q": m{"a": "1"}, "t": "2026-01-01T00:00:00Z"}},
			m{"odd": m{"q": m{"a": "1"}, "t": "2026-01-01T01:00:00+01:00"}}, true},
		{"map for text", "an empty map that is none by its type", m{"odd": m{"none": m{}}}, m{"odd": m{}}, false},
		{"numbers for an instant", "", m{"at": int64(1)}, m{"at": int64(2)}, false},
		{"booleans for a quantity", "", m{"cpu": true}, m{"cpu": false}, false},
		{"undeclared", "what is not declared is deduced", m{"odd": m{"x": m{"a": "1"}}}, m{"odd": m{"x": m{"a": "1000m"}}},
			false},
		{"lists of atomic structs", "item by item", m{"whole": []any{m{"text": "a"}, m{"limits": m{"cpu": "1"}}}},
			m{"whole": []any{m{"text": "a"}, m{"limits": m{"cpu": "1000m"}}}}, true},
		{"lists of other atomic structs", "", m{"whole": []any{m{"text": "a"}, m{"text": "b"}}},
			m{"whole": []any{m{"text": "a"}, m{"text": "c"}}}, false},
		{"list and map", "", m{"whole": []any{}}, m{"whole": m{}}, false},
		{"longest quantity", "64 bytes are read", m{"cpu": strings.Repeat("0", 63) + "1"}, m{"cpu": "1"}, true},
		{"too long a quantity", "", m{"cpu": strings.Repeat("0", 64) + "1"}, m{"cpu": "1"}, false},
		{"largest exponent", "amounts below a nano are rounded up to it", m{"cpu": "10e-999"}, m{"cpu": "1e-999"}, true},
		{"too large an exponent", "to compare it is to write out its digits", m{"cpu": "10e-1000"}, m{"cpu": "1e-999"},
			false},
		{"exponents that are too large", "neither is read", m{"cpu": "10e-1000"}, m{"cpu": "2e-1000"}, false},
		{"letter alone", "an exponent or exa", m{"cpu": "1E"}, m{"cpu": "1e18"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, pair := range [][2]m{{row.a, row.b}, {row.b, row.a}} {
				require.Equal(t, row.same, typed.Canonical(nil).Compare(typ, pair[0], pair[1]).IsUnchanged(), row.why)
			}
		})
	}
}
