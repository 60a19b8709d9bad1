package typed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
)

// TestValueLimits shows each limit of a value (spec rules 12.1 and 12.2): a value at the limit, and one beyond it.
func TestValueLimits(t *testing.T) {
	set := &typed.Type{List: typed.SetList(&typed.Type{Scalar: typed.Untyped})}
	keyed := &typed.Type{List: typed.KeyedList(typed.Deduced(), "k")}
	nested := func(depth int) any {
		var v any = "x"
		for range depth {
			v = []any{v}
		}
		return v
	}
	shared := func(n int) any { // 65 lists that share one of n items
		list := make([]any, n)
		out := make([]any, 64)
		for i := range out {
			out[i] = list
		}
		return out
	}
	entries := func(depth int) any {
		var v any = "x"
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	text := func(n int) string { return strings.Repeat("k", n) }
	for _, c := range []struct {
		why    string
		typ    *typed.Type
		within any
		beyond any
		detail string
	}{
		{"nesting", typed.Deduced(), nested(limits.MaxDepth), nested(limits.MaxDepth + 1),
			"nested deeper than 1000"},
		{"values", typed.Deduced(), shared(limits.MaxValues/64 - 2), shared(limits.MaxValues / 64),
			"more than 4194304 values"},
		{"values, to the last", typed.Deduced(), append(shared(1<<16-2).([]any), make([]any, 63)...),
			append(shared(1<<16-2).([]any), make([]any, 64)...), "more than 4194304 values"},
		{"items", typed.Deduced(), make([]any, limits.MaxItems), make([]any, limits.MaxItems+1),
			"1000001 items, expected at most 1000000"},
		{"name of a field", typed.Deduced(), map[string]any{text(limits.MaxElement): 1},
			map[string]any{text(limits.MaxElement + 1): 1}, "a name of 262145 bytes, expected at most 262144"},
		{"item of a set, which is quoted", set, []any{text(limits.MaxElement - 2)}, []any{text(limits.MaxElement - 1)},
			"a key of 262145 bytes, expected at most 262144"},
		{"item of a set, which is escaped", set, []any{strings.Repeat("\x01", 40_000)},
			[]any{strings.Repeat("\x01", 50_000)}, "a key of 300002 bytes, expected at most 262144"},
		{"key", keyed, []any{map[string]any{"k": text(1000)}}, []any{map[string]any{"k": text(limits.MaxElement + 1)}},
			`key field "k": a text of 262145 bytes, expected at most 262144`},
		{"key that is a container", keyed, []any{map[string]any{"k": nested(10)}},
			[]any{map[string]any{"k": nested(1_000_000)}},
			`key field "k": a value in a key of more than 262144 bytes or 1000 levels`},
		{"levels of maps in a key", keyed, []any{map[string]any{"k": entries(900)}},
			[]any{map[string]any{"k": entries(2000)}}, `key field "k": a value in a key of more than`},
		{"levels of lists in a key", keyed, []any{map[string]any{"k": nested(900)}},
			[]any{map[string]any{"k": nested(2000)}}, `key field "k": a value in a key of more than`},
		{"values in a key", keyed, []any{map[string]any{"k": make([]any, 1000)}},
			[]any{map[string]any{"k": make([]any, limits.MaxElement+1)}}, `key field "k": a value in a key of more than`},
	} {
		require.NoError(t, c.typ.Validate(c.within, typed.Rules{AllowUnknown: true}), c.why)
		err := c.typ.Validate(c.beyond, typed.Rules{AllowUnknown: true})
		var typedErr *typed.Error
		require.ErrorAs(t, err, &typedErr, c.why)
		require.Contains(t, typedErr.Detail, c.detail, c.why)
	}
}

// TestEqualLimits shows the maximum size and depth of values that can be found equal.
func TestEqualLimits(t *testing.T) {
	type m = map[string]any
	nested := func(depth int, wrap func(any) any) (v any) {
		v = "x"
		for range depth {
			v = wrap(v)
		}
		return v
	}
	inMap := func(v any) any { return m{"a": v} }
	inList := func(v any) any { return []any{v} }
	for _, wrap := range []func(any) any{inMap, inList} {
		for depth, want := range map[int]bool{limits.MaxDepth + 1: true, limits.MaxDepth + 2: false} {
			require.Equal(t, want, typed.Equal(nested(depth, wrap), nested(depth, wrap)))
		}
	}
	// 63 lists of 65,536 values each, and one list with the remaining values.
	sized := func(last any) any {
		list := make([]any, 1<<16)
		out := make([]any, 63, 64)
		for i := range out {
			out[i] = list
		}
		return append(out, last)
	}
	const left = limits.MaxValues - 64 - 63<<16
	for n, want := range map[int]bool{left: true, left + 1: false} {
		require.Equal(t, want, typed.Equal(sized(make([]any, n)), sized(make([]any, n))), "lists")
		last := [2]m{{}, {}}
		for i := range n {
			name := fmt.Sprint(i)
			last[0][name], last[1][name] = nil, nil
		}
		require.Equal(t, want, typed.Equal(sized(last[0]), sized(last[1])), "maps")
		items := func() any { // the two items have different names
			out := make([]any, 8)
			for i := range out {
				out[i] = m{"a": "x", "b": []any{}, fmt.Sprint(i): "x"}
			}
			out[1].(m)["b"] = make([]any, n-8*4)
			return out
		}
		for range 4 { // maps are iterated in random order
			require.Equal(t, want, typed.Equal(sized(items()), sized(items())), "items of different names")
		}
	}
}

// TestValidateEnds shows that validation stops at a value that is nested too deep, and that it always reports the same
// value.
func TestValidateEnds(t *testing.T) {
	deep := any("x")
	for range limits.MaxDepth {
		deep = map[string]any{"n": deep}
	}
	both := map[string]any{"a": deep, "b": deep, "c": deep}
	endless := map[string]any{}
	endless["a"] = endless
	for range 20 { // maps are visited in random order
		for _, v := range []any{both, endless} {
			errs := typed.Deduced().Validate(v, typed.Rules{}).(typed.Errors)
			require.Len(t, errs, 1)
			require.Equal(t, "nested deeper than 1000", errs[0].Detail)
			require.Equal(t, ".a", errs[0].Path[:1].String())
		}
	}
}

// TestErrorLimit shows that the first violations in path order are reported, in whatever order they are found, with the
// number of the others (spec rule 12.6).
func TestErrorLimit(t *testing.T) {
	numbers := &typed.Type{Map: typed.NewMap(nil, &typed.Type{Scalar: typed.Numeric})}
	bad := func(n int) map[string]any {
		out := map[string]any{}
		for i := range n {
			out[fmt.Sprintf("%05d", i)] = "x"
		}
		return out
	}
	require.Len(t, numbers.Validate(bad(limits.MaxErrors), typed.Rules{}), limits.MaxErrors, "as many as are listed")
	for _, n := range []int{limits.MaxErrors + 1, 2*limits.MaxErrors - 1, 2 * limits.MaxErrors, 2*limits.MaxErrors + 1,
		12_345} {
		errs := numbers.Validate(bad(n), typed.Rules{}).(typed.Errors)
		require.Len(t, errs, limits.MaxErrors+1)
		for i, err := range errs[:limits.MaxErrors] {
			require.Equal(t, fmt.Sprintf(".%05d", i), err.Path.String())
		}
		last := errs[limits.MaxErrors]
		require.Empty(t, last.Path)
		require.EqualError(t, last, fmt.Sprintf("%d more errors are not listed", n-limits.MaxErrors))
	}
}
