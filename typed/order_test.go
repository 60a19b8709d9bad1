package typed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
)

func TestReordered(t *testing.T) {
	str := &typed.Type{Scalar: typed.String}
	set := &typed.Type{List: &typed.List{Set: true, Elem: str}}
	item := &typed.Type{Map: &typed.Map{Fields: map[string]typed.Field{"name": {Type: str}, "tags": {Type: set}}}}
	root := &typed.Type{Map: &typed.Map{Fields: map[string]typed.Field{
		"set":   {Type: set},
		"list":  {Type: &typed.Type{List: &typed.List{Keys: []string{"name"}, Elem: item}}},
		"whole": {Type: &typed.Type{Map: &typed.Map{Atomic: true, Fields: map[string]typed.Field{"set": {Type: set}}}}},
		"atom":  {Type: &typed.Type{List: &typed.List{Elem: str}}},
	}}}
	named := func(name string, tags ...any) any { return map[string]any{"name": name, "tags": tags} }
	type m = map[string]any
	for _, row := range []struct {
		name     string
		old, now m
		want     string
		why      string
	}{
		{"same", m{"set": []any{"a", "b"}}, m{"set": []any{"a", "b"}}, "", "one order"},
		{"swapped", m{"set": []any{"a", "b"}}, m{"set": []any{"b", "a"}}, ".set", "another order"},
		{"added between", m{"set": []any{"a", "b"}}, m{"set": []any{"a", "c", "b"}}, "", "what is shared keeps its order"},
		{"removed and swapped", m{"set": []any{"a", "b", "c"}}, m{"set": []any{"c", "x", "a"}}, ".set",
			"what is shared does not"},
		{"duplicates", m{"set": []any{"a", "b", "a"}}, m{"set": []any{"a", "b"}}, "",
			"a duplicate that goes is no other order, but a removal"},
		{"duplicates that both have", m{"set": []any{"a", "b", "a"}}, m{"set": []any{"a", "a", "b"}}, ".set",
			"each of them counts"},
		{"duplicates that one has", m{"set": []any{"a", "a", "b"}}, m{"set": []any{"b", "a"}}, ".set",
			"the first of them counts"},
		{"inside duplicates", m{"list": []any{named("a", "x", "y"), named("a")}},
			m{"list": []any{named("a", "y", "x"), named("a")}}, "", "which are compared as one value"},
		{"inside one of duplicates", m{"list": []any{named("a", "x", "y"), named("a")}},
			m{"list": []any{named("a", "y", "x")}}, "", ""},
		{"inside an atomic struct", m{"whole": m{"set": []any{"a", "b"}}}, m{"whole": m{"set": []any{"b", "a"}}}, "",
			"which is one value"},
		{"beside what is not declared", m{"other": []any{"a", "b"}, "set": []any{"a", "b"}},
			m{"other": []any{"b", "a"}, "set": []any{"b", "a"}}, ".set", "of which no list is known"},
		{"keyed", m{"list": []any{named("a"), named("b")}}, m{"list": []any{named("b"), named("a")}}, ".list", "by key"},
		{"inside items", m{"list": []any{named("a", "x", "y"), named("b")}},
			m{"list": []any{named("b"), named("a", "y", "x")}},
			".list\n.list[name=\"a\"].tags", "and in the items"},
		{"inside an item alone", m{"list": []any{named("a", "x", "y"), named("b")}},
			m{"list": []any{named("a", "y", "x"), named("b")}},
			".list[name=\"a\"].tags", "the list around it is in order"},
		{"atomic", m{"atom": []any{"a", "b"}}, m{"atom": []any{"b", "a"}}, "", "which is one value, and modified"},
		{"not a list", m{"set": "a"}, m{"set": []any{"b", "a"}}, "", "shapes differ"},
		{"absent", m{}, m{"set": []any{"b", "a"}}, "", "added, not reordered"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, strings.TrimSpace(root.Reordered(row.old, row.now).String()), row.why)
			require.Equal(t, row.want, strings.TrimSpace(root.Reordered(row.now, row.old).String()), "both ways")
			require.Equal(t, typed.Equal(row.old, row.now), (*typed.Semantics)(nil).Equal(root, row.old, row.now))
			same := root.Compare(row.old, row.now).Unchanged() && row.want == ""
			require.Equal(t, same, typed.Canonical(nil).Equal(root, row.old, row.now),
				"what is neither changed nor reordered is equal")
		})
	}
}
