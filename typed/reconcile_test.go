package typed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestReconciled shows that IsReconciled finds what Reconcile would change, without decoding.
func TestReconciled(t *testing.T) {
	selectors := &typed.Type{Map: typed.NewMap(nil, &typed.Type{Map: typed.NewMap(nil, str).WithAtomic(true)})}
	for _, row := range []struct {
		name, why string
		typ       *typed.Type
		fields    string
		want      bool
	}{
		{"nothing", "", root, `{}`, true},
		{"marks", "a mark is no field", root, `{f:maps: {f:a: {.: {}, f:b: {}}}}`, true},
		{"map became atomic", "", root, `{f:selector: {f:a: {}}}`, false},
		{"atomic map", "owned as a whole", root, `{f:selector: {}}`, true},
		{"nested", "at every level", root, `{f:template: {f:template: {f:selector: {f:a: {}}}}}`, false},
		{"in item", "below items too", root, `{f:named: {'k:{"name":"a"}': {f:tags: {'v:"x"': {}}}}}`, true},
		{"below a scalar", "", root, `{f:s: {f:a: {}}}`, true},
		{"deduced", "values without a schema have no topology to follow", root, `{f:free: {f:a: {f:b: {}}}}`, true},
		{"item of a list", "whatever selects it", setOf(selectors.Map.Elem()), `{'i:0': {f:a: {}}}`, false},
		{"item in a map", "", selectors, `{'i:0': {f:a: {}}}`, false},
		{"entry", "", selectors, `{f:x: {f:a: {}}}`, false},
		{"scalar", "a scalar has nothing below it", str, `{f:x: {f:a: {}}}`, true},
		{"no shape", "", &typed.Type{}, `{f:x: {f:a: {}}}`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			fields := tree(t, row.fields).(map[string]any)
			require.Equal(t, row.want, row.typ.IsReconciled(fields), row.why)
			s := set(t, row.fields)
			require.Equal(t, row.want, row.typ.Reconcile(s) == s, "as Reconcile has it")
		})
	}
	for _, marked := range []string{`{f:s: {.: {}}}`, `{f:maps: {f:a: {.: {}}}}`, `{.: {}, f:s: {}}`} {
		require.False(t, root.IsReconciled(tree(t, marked).(map[string]any)),
			"a mark that says nothing is not canonical: %s", marked)
	}
	require.False(t, root.IsReconciled(map[string]any{"f:s": "odd"}), "what it does not understand")
	nothing := map[string]any{}
	require.False(t, root.IsReconciled(map[string]any{"f:s": map[string]any{".": map[string]any{"f:x": nothing}}}),
		"a mark that holds something")
	beside := map[string]any{".": map[string]any{"f:x": nothing}, "f:y": nothing}
	require.False(t, root.IsReconciled(map[string]any{"f:maps": map[string]any{"f:a": beside}}), "beside others, too")
	for _, name := range []string{"", "f", "fs", "x:s", "f:" + strings.Repeat("x", limits.MaxElement+1)} {
		require.False(t, root.IsReconciled(map[string]any{name: nothing}), "%.10q is the name of no member", name)
	}
	require.True(t, root.IsReconciled(map[string]any{"f:" + strings.Repeat("x", limits.MaxElement-2): nothing}),
		"a long name")

	deep := func(n int) map[string]any {
		out := map[string]any{}
		for range n {
			out = map[string]any{"f:template": out}
		}
		return out
	}
	require.True(t, root.IsReconciled(deep(limits.MaxDepth)))
	require.False(t, root.IsReconciled(deep(limits.MaxDepth+1)), "deeper than a path may be")
	recursive := &typed.Type{}
	recursive.Map = typed.NewMap(nil, recursive)
	wide := func(levels int) map[string]any { // maps are shared, so that the tree has 2^(levels+1) members
		out := map[string]any{"f:a": map[string]any{}}
		for range levels {
			out = map[string]any{"f:a": out, "f:b": out}
		}
		return out
	}
	require.True(t, recursive.IsReconciled(wide(16)))
	require.False(t, recursive.IsReconciled(wide(22)), "more members than it looks at")
}

// TestGrownKeys: what lacks key fields gets their defaults, where it is known which item it meant (spec rule 8.4).
func TestGrownKeys(t *testing.T) {
	field := func(def any) typed.Field {
		return typed.Field{Type: &typed.Type{Scalar: typed.Untyped}, Default: def}
	}
	list := &typed.Type{List: typed.KeyedList(&typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"port": field(nil), "proto": field("TCP"), "zone": field("a"), "note": field(nil),
	}, nil)}, "port", "proto", "zone", "note")}
	root := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"list": {Type: list}}, nil)}
	for _, c := range []struct{ why, before, after string }{
		{"both defaults", `"k:{\"port\":1}":{"f:port":{}}`, `"k:{\"port\":1,\"proto\":\"TCP\",\"zone\":\"a\"}":{"f:port":{}}`},
		{"one of them", `"k:{\"port\":1,\"proto\":\"UDP\"}":{}`, `"k:{\"port\":1,\"proto\":\"UDP\",\"zone\":\"a\"}":{}`},
		{"other keys have no default", `"k:{\"note\":\"x\",\"port\":1}":{}`,
			`"k:{\"note\":\"x\",\"port\":1,\"proto\":\"TCP\",\"zone\":\"a\"}":{}`},
		{"complete", `"k:{\"port\":1,\"proto\":\"UDP\",\"zone\":\"b\"}":{}`, ""},
		{"complete, in other letters", `"k:{\"port\":\"é<\",\"proto\":\"UDP\",\"zone\":\"\\\"\"}":{}`, ""},
		{"another value of what is missing", `"k:{\"port\":1}":{},"k:{\"port\":1,\"proto\":\"UDP\",\"zone\":\"a\"}":{}`, ""},
		{"two of them", `"k:{\"port\":1}":{},"k:{\"port\":1,\"proto\":\"TCP\",\"zone\":\"a\"}":{},` +
			`"k:{\"port\":1,\"proto\":\"UDP\",\"zone\":\"a\"}":{}`, ""},
		{"the same, complete: both are one", `"k:{\"port\":1}":{"f:port":{}},"k:{\"port\":1,\"proto\":\"TCP\",\"zone\":\"a\"}":{"f:zone":{}}`,
			`"k:{\"port\":1,\"proto\":\"TCP\",\"zone\":\"a\"}":{"f:port":{},"f:zone":{}}`},
		{"of another list", `"k:{\"name\":\"x\"}":{}`, ""},
		{"an item of a set", `"v:1":{}`, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			set, err := fieldpath.Parse([]byte(`{"f:list":{` + c.before + `}}`))
			require.NoError(t, err)
			want := set
			if c.after != "" {
				want, err = fieldpath.Parse([]byte(`{"f:list":{` + c.after + `}}`))
				require.NoError(t, err)
			}
			updated := root.Reconcile(set)
			require.Equal(t, want.String(), updated.String())
			require.Equal(t, updated.String(), root.Reconcile(updated).String(), "once")
			if c.after != "" {
				require.False(t, root.IsReconciled(set.Tree()))
			} else {
				require.Same(t, set, updated)
			}
		})
	}
}
