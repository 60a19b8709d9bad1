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
		{"nothing", "an empty intent owns nothing", `{}`, nil},
		{"null root", "a missing value owns nothing either", `null`, nil},
		{"scalars", "scalars are leaves", `{s: a, num: 1, t: false}`, []string{".num", ".s", ".t"}},
		{"null", "so are nulls", `{s: null, labels: null, set: null}`, []string{".labels", ".s", ".set"}},
		{"struct", "a struct with something in it is not owned itself", `{template: {s: a}}`, []string{".template.s"}},
		{"empty struct", "an empty one is", `{template: {}}`, []string{".template"}},
		{"map", "entries of a map are leaves, the map is not owned", `{labels: {a: x, b: z}}`,
			[]string{".labels.a", ".labels.b"}},
		{"empty map", "", `{labels: {}}`, []string{".labels"}},
		{"map of maps", "entries that are no declared fields are owned along with what is in them",
			`{maps: {a: {b: x}, c: {}}}`, []string{".maps.a", ".maps.c", ".maps.a.b"}},
		{"atomic map", "one leaf, whatever is in it", `{selector: {a: x}}`, []string{".selector"}},
		{"empty atomic map", "", `{selector: {}}`, []string{".selector"}},
		{"atomic list", "one leaf too", `{args: [a, b]}`, []string{".args"}},
		{"empty atomic list", "also with nothing in it", `{args: []}`, []string{".args"}},
		{"empty set", "an empty granular list owns nothing", `{set: []}`, nil},
		{"set", "items are owned by their value", `{set: [b, a]}`, []string{`.set[="a"]`, `.set[="b"]`}},
		{"keyed list", "items are owned along with what is in them", `{named: [{name: a, port: 1}]}`,
			[]string{`.named[name="a"]`, `.named[name="a"].name`, `.named[name="a"].port`}},
		{"defaulted key", "a default is part of the key but not a field", `{ports: [{port: 1}]}`,
			[]string{`.ports[port=1,proto="TCP"]`, `.ports[port=1,proto="TCP"].port`}},
		{"duplicates", "duplicated items are owned as items only",
			`{named: [{name: a, port: 1}, {name: a}, {name: b}], set: [a, a]}`,
			[]string{`.named[name="a"]`, `.named[name="b"]`, `.named[name="b"].name`, `.set[="a"]`}},
		{"recursion", "a type may contain itself", `{template: {template: {template: {s: a}}}}`,
			[]string{".template.template.template.s"}},
		{"deduced", "values without a schema are maps all the way down; their lists are atomic",
			`{free: {a: {b: 1}, c: [1], d: {}}}`,
			[]string{".free.a", ".free.c", ".free.d", ".free.a.b"}},
		{"deduced scalar", "", `{free: 1}`, []string{".free"}},
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

func TestWithDeclared(t *testing.T) {
	for _, row := range []struct {
		name, why, set string
		want           []string
	}{
		{"leaf", "a leaf stays as it is", `{f:s: {}}`, []string{".s"}},
		{"struct", "a declared field goes with its content", `{f:template: {f:s: {}}}`, []string{".template", ".template.s"}},
		{"nested", "at every level", `{f:template: {f:template: {f:s: {}}}}`,
			[]string{".template", ".template.template", ".template.template.s"}},
		{"map", "also when it is a map", `{f:labels: {f:a: {}}}`, []string{".labels", ".labels.a"}},
		{"map entry", "an entry that is no declared field does not", `{f:maps: {f:a: {f:b: {}}}}`,
			[]string{".maps", ".maps.a.b"}},
		{"item", "nor an item, but what is declared in it does", `{f:named: {'k:{"name":"a"}': {f:tags: {'v:"x"': {}}}}}`,
			[]string{".named", `.named[name="a"].tags`, `.named[name="a"].tags[="x"]`}},
		{"unknown", "what the type does not know stays", `{f:x: {f:y: {}}}`, []string{".x.y"}},
		{"wrong element", "even where it can't be", `{f:named: {f:a: {f:b: {}}}, 'k:{"name":"a"}': {f:tags: {f:x: {}}}}`,
			[]string{".named", `[name="a"].tags.x`, `.named.a.b`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := set(t, row.set)
			require.ElementsMatch(t, row.want, lines(root.WithDeclared(s)), row.why)
			d := differential{root, upstreamRoot}
			require.NoError(t, d.withDeclared(s))
		})
	}
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
	got, found = root.Get(map[string]any{"x": map[string]any{"y": "z"}}, fieldpath.Fields("x", "y"))
	require.True(t, found)
	require.Equal(t, "z", got, "undeclared fields are found too")
}
