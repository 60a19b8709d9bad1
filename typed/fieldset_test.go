package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestFieldSet(t *testing.T) {
	for _, row := range []struct {
		name, why, value string
		want             []string
	}{
		{"null root", "a missing value owns nothing", `null`, nil},
		{"null", "nulls are leaves", `{s: null, labels: null, set: null}`, []string{".labels", ".s", ".set"}},
		{"empty struct", "an empty struct is owned itself", `{template: {}}`, []string{".template"}},
		{"map of maps", "entries that are no declared fields are owned along with what is in them",
			`{maps: {a: {b: x}, c: {}}}`, []string{".maps.a", ".maps.c", ".maps.a.b"}},
		{"empty atomic map", "", `{selector: {}}`, []string{".selector"}},
		{"empty atomic list", "a leaf, also with nothing in it", `{args: []}`, []string{".args"}},
		{"empty set", "an empty granular list owns nothing", `{set: []}`, nil},
		{"keyed list", "items are owned along with what is in them", `{named: [{name: a, port: 1}]}`,
			[]string{`.named[name="a"]`, `.named[name="a"].name`, `.named[name="a"].port`}},
		{"defaulted key", "a default is part of the key but not a field", `{ports: [{port: 1}]}`,
			[]string{`.ports[port=1,proto="TCP"]`, `.ports[port=1,proto="TCP"].port`}},
		{"duplicates", "duplicated items are owned as items only",
			`{named: [{name: a, port: 1}, {name: a}, {name: b}], set: [a, a]}`,
			[]string{`.named[name="a"]`, `.named[name="b"]`, `.named[name="b"].name`, `.set[="a"]`}},
		{"deduced", "values without a schema are maps all the way down; their lists are atomic",
			`{free: {a: {b: 1}, c: [1], d: {}}}`,
			[]string{".free.a", ".free.c", ".free.d", ".free.a.b"}},
		{"untyped atomic", "owned as a whole", `{raw: {a: {b: 1}}}`, []string{".raw"}},
		{"scalar or map", "of several shapes the value's counts", `{scalarMap: {a: x}}`, []string{".scalarMap.a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := tree(t, row.value)
			require.Equal(t, row.want, lines(root.FieldSet(v)), row.why)
			theirs, err := upstream(v).ToFieldSet()
			require.NoError(t, err)
			require.ElementsMatch(t, row.want, upstreamLines(theirs), "upstream")
		})
	}
	require.Equal(t, []string{`.set[="a"]`}, lines(root.FieldSet(tree(t, `{set: [a, {}]}`))),
		"items that nothing can select are left out")
	require.Nil(t, lines(root.FieldSet(map[string]any{"x": map[string]any{}}).Difference(set(t, `{f:x: {}}`))),
		"undeclared fields are deduced")
}

func TestGet(t *testing.T) {
	v := tree(
		t,
		`{s: a, args: [x, z], named: [{name: a, port: 1}, {name: a, port: 2}], set: [q], maps: {a: {b: c}}, free: {a: [{b: 1}]}, template: null}`,
	)
	for _, row := range []struct {
		name, why, path string
		want            any
		found           bool
	}{
		{"field", "", `{f:s: {}}`, "a", true},
		{"entry", "", `{f:maps: {f:a: {f:b: {}}}}`, "c", true},
		{"position", "atomic lists have positions", `{f:args: {i:1: {}}}`, "z", true},
		{"position beyond", "", `{f:args: {i:2: {}}}`, nil, false},
		{"item", "of duplicates the first counts", `{f:named: {'k:{"name":"a"}': {f:port: {}}}}`, int64(1), true},
		{"no such item", "", `{f:named: {'k:{"name":"b"}': {f:port: {}}}}`, nil, false},
		{"set item", "", `{f:set: {'v:"q"': {}}}`, "q", true},
		{"no such set item", "", `{f:set: {'v:1': {}}}`, nil, false},
		{"null", "a null is there", `{f:template: {}}`, nil, true},
		{"below a null", "but nothing below it", `{f:template: {f:s: {}}}`, nil, false},
		{"no such field", "", `{f:num: {}}`, nil, false},
		{"below a scalar", "", `{f:s: {f:x: {}}}`, nil, false},
		{"deduced", "what has no schema is deduced", `{f:free: {f:a: {i:0: {f:b: {}}}}}`, int64(1), true},
		{"position in a map", "", `{f:maps: {i:0: {}}}`, nil, false},
		{"item in a map", "", `{f:maps: {'k:{"name":"a"}': {}}}`, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			for p := range set(t, row.path).All() {
				got, found := root.Get(v, p)
				require.Equal(t, row.want, got, row.why)
				require.Equal(t, row.found, found)
			}
		})
	}
	got, found := root.Get(v, nil)
	require.True(t, found)
	require.Equal(t, v, got, "the empty path is the whole")
	got, found = root.Get(map[string]any{"x": map[string]any{"y": "z"}}, fieldpath.NewPath("x", "y"))
	require.True(t, found)
	require.Equal(t, "z", got, "undeclared fields are found too")
}
