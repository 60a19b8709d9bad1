package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
)

// TestDefault shows spec rule 13.2.
func TestDefault(t *testing.T) {
	str, num := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	port := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"port": {Type: num}, "protocol": {Type: str, Default: "TCP"},
	}, nil)}
	limits := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"cpu": {Type: str, Default: "1"}, "memory": {Type: str},
	}, nil)}
	root := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"size":   {Type: num, Default: int64(1)},
		"note":   {Type: str},
		"maybe":  {Type: str, Nullable: true},
		"choice": {Type: str, Default: "a", Nullable: true},
		"limits": {Type: limits, Default: map[string]any{}},
		"ports":  {Type: &typed.Type{List: typed.KeyedList(port, "port")}},
		"plain":  {Type: &typed.Type{List: typed.AtomicList(port)}},
		"sealed": {Type: &typed.Type{Map: typed.NewMap(nil, limits).WithAtomic(true)}},
		"bare":   {Default: map[string]any{}}, // without a type
	}, str)}
	full := map[string]any{
		"size": int64(1), "choice": "a", "limits": map[string]any{"cpu": "1"}, "bare": map[string]any{},
	}
	with := func(pairs ...any) map[string]any {
		out := map[string]any{}
		for k, v := range full {
			out[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	for _, row := range []struct {
		name     string
		in, want any
		why      string
	}{
		{"nothing", map[string]any{}, full, "absent fields have their defaults, and those have theirs"},
		{"full", full, full, "there is nothing to fill in"},
		{"own values", with("size", int64(3)), with("size", int64(3)), "a default is for what is absent"},
		{"null with default", with("size", nil), full, "a null that may not be one is absence"},
		{"null without default", with("note", nil), full, "and goes where nothing fills it"},
		{"nullable null", with("maybe", nil), with("maybe", nil), "this null is a value"},
		{"nullable null with default", with("choice", nil), with("choice", nil), "which no default replaces"},
		{"empty struct", with("limits", map[string]any{"memory": "2"}),
			with("limits", map[string]any{"memory": "2", "cpu": "1"}), "structs are filled from inside"},
		{"items", with("ports", []any{map[string]any{"port": int64(1)}, map[string]any{"port": int64(2), "protocol": "UDP"}}),
			with("ports",
				[]any{map[string]any{"port": int64(1), "protocol": "TCP"}, map[string]any{"port": int64(2), "protocol": "UDP"}}),
			"items of lists are filled"},
		{"atomic list", with("plain", []any{nil, map[string]any{}}),
			with("plain", []any{nil, map[string]any{"protocol": "TCP"}}), "so are those of atomic lists, nulls aside"},
		{"atomic map", with("sealed", map[string]any{"a": map[string]any{}}),
			with("sealed", map[string]any{"a": map[string]any{"cpu": "1"}}), "and of atomic maps"},
		{"undeclared", with("other", nil), with("other", nil), "an entry of a map with free keys has no default"},
		{"wrong kind", "text", "text", "what is of no shape of the type stays"},
	} {
		t.Run(row.name, func(t *testing.T) {
			copied := clone(row.in)
			got := root.Default(row.in)
			require.Equal(t, row.want, got, row.why)
			require.Equal(t, copied, row.in, "the input is not changed")
			require.Equal(t, got, root.Default(got), "filled in once is filled in")
		})
	}
	same := root.Default(full).(map[string]any)
	same["mark"] = "x"
	require.Contains(t, full, "mark", "what needs nothing is returned itself")
	delete(full, "mark")
}

func clone(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range x {
			out[k] = clone(item)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range x {
			out = append(out, clone(item))
		}
		return out
	}
	return v
}

// A default that contains itself ends at the maximum depth of a value.
func TestDefaultInItself(t *testing.T) {
	chain := &typed.Type{}
	chain.Map = typed.NewMap(map[string]typed.Field{"a": {Type: chain, Default: map[string]any{}}}, nil)
	depth := 0
	for v, ok := chain.Default(map[string]any{}).(map[string]any); ok; v, ok = v["a"].(map[string]any) {
		depth++
	}
	require.LessOrEqual(t, depth, limits.MaxDepth+2)
}

// TestDefaultOfInvalidValues shows that values without a type, and values whose kind their type does not allow, get no
// defaults and do not change. Stored objects may contain such values.
func TestDefaultOfInvalidValues(t *testing.T) {
	text := &typed.Type{Scalar: typed.String}
	typ := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"text": {Type: text}, "list": {Type: &typed.Type{List: typed.AtomicList(text)}},
		"map": {Type: &typed.Type{Map: typed.NewMap(nil, text)}},
	}, nil)}
	for _, name := range []string{"text", "list", "map", "undeclared"} {
		for _, v := range []any{"x", []any{"x"}, map[string]any{"a": "x"}, []any{map[string]any{"a": "x"}}, nil} {
			if v == nil && name != "undeclared" {
				continue // a null of a declared field is treated as absent
			}
			in := map[string]any{name: v}
			require.Equal(t, map[string]any{name: v}, typ.Default(in), "%s: %v", name, v)
		}
	}
}
