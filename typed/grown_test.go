package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

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
			now := root.Reconcile(set)
			require.Equal(t, want.String(), now.String())
			require.Equal(t, now.String(), root.Reconcile(now).String(), "once")
			if c.after != "" {
				require.False(t, root.IsReconciled(set.Tree()))
			} else {
				require.Same(t, set, now)
			}
		})
	}
}
