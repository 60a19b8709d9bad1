package typed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// TestRemove shows difference 1: a container that loses its whole content remains, empty. Upstream and RemoveToNull
// make it null.
func TestRemove(t *testing.T) {
	for _, row := range []struct {
		name, why, value, set string
		want, toNull          string // toNull is also upstream's result; empty if it equals want
	}{
		{"last entry", "the container stays, empty", `{s: a, labels: {a: x}}`, `{f:labels: {f:a: {}}}`,
			`{"labels":{},"s":"a"}`, `{"labels":null,"s":"a"}`},
		{"last field", "", `{s: a, template: {s: b}}`, `{f:template: {f:s: {}}}`, `{"s":"a","template":{}}`,
			`{"s":"a","template":null}`},
		{"last set item", "", `{set: [b]}`, `{f:set: {'v:"b"': {}}}`, `{"set":[]}`, `{"set":null}`},
		{"duplicates", "all items of the element go", `{named: [{name: a}, {name: a, port: 1}, {name: b}]}`,
			`{f:named: {'k:{"name":"a"}': {}}}`, `{"named":[{"name":"b"}]}`, ""},
		{"everything in an item", "", `{named: [{name: a}, {name: b}]}`, `{f:named: {'k:{"name":"a"}': {f:name: {}}}}`,
			`{"named":[{},{"name":"b"}]}`, `{"named":[null,{"name":"b"}]}`},
		{"everything in all items", "they are found by no key any more, so that the list has to be", `{named: [{name: a}]}`,
			`{f:named: {'k:{"name":"a"}': {f:name: {}}}}`, `{"named":[{}]}`, `{"named":[null]}`},
		{"already empty map", "an empty map that the set speaks into counts as emptied for RemoveToNull", `{labels: {}}`,
			`{f:labels: {f:a: {}}}`, `{"labels":{}}`, `{"labels":null}`},
		{"already empty list", "", `{set: []}`, `{f:set: {'v:"a"': {}}}`, `{"set":[]}`, `{"set":null}`},
		{"empty left alone", "one that it does not speak of stays", `{labels: {}, s: a}`, `{f:s: {}}`, `{"labels":{}}`, ""},
		{"empty item left alone", "its key is its defaults", `{ports: [{}, {port: 1}]}`,
			`{f:ports: {'k:{"port":1,"proto":"TCP"}': {}}}`, `{"ports":[{}]}`, ""},
		{"root", "the root stays too", `{s: a}`, `{f:s: {}}`, `{}`, `null`},
	} {
		t.Run(row.name, func(t *testing.T) {
			v, s := tree(t, row.value), set(t, row.set)
			require.Equal(t, row.want, oracle.JSON(root.Remove(v, s)), row.why)
			if row.toNull == "" {
				row.toNull = row.want
			}
			require.Equal(t, row.toNull, oracle.JSON(root.RemoveToNull(v, s)), row.why)
			require.Equal(t, row.toNull, oracle.JSON(plain(upstream(v).RemoveItems(upstreamSet(s)))), "upstream")
		})
	}
}

func TestRemoveInsideAtomic(t *testing.T) {
	v := tree(t, `{selector: {a: x}, args: [a], s: b}`)
	s := set(t, `{f:selector: {f:a: {}}, f:args: {i:0: {}, 'v:"a"': {}}}`)
	require.Equal(t, v, root.Remove(v, s))
	require.Equal(t, v, root.RemoveToNull(v, s))
	require.Equal(t, map[string]any{}, root.RemoveToNull(map[string]any{}, nil), "nothing is removed of nothing")
	require.Equal(t, `{"args":null,"s":"b","selector":null}`,
		oracle.JSON(plain(upstream(v).RemoveItems(upstreamSet(s)))), "upstream")
	odd := tree(t, `{set: [a, {}]}`)
	require.Equal(t, `{"set":[{}]}`, oracle.JSON(root.Remove(odd, set(t, `{f:set: {'v:"a"': {}}}`))),
		"items that nothing can select stay")
	require.Equal(t, odd, root.Remove(odd, set(t, `{f:set: {'f:': {}}}`)), "also from a field of no name")
	live := tree(t, `{labels: {"1": x}}`)
	require.Equal(t, live, root.Remove(live, set(t, `{f:labels: {'v:1': {}}}`)),
		"what selects no entry removes none of the same text")
	wrong := tree(t, `{s: {a: b}, num: [1]}`)
	require.Equal(t, wrong, root.Remove(wrong, set(t, `{f:s: {f:a: {}}, f:num: {i:0: {}}}`)),
		"so does what is of no shape of its type")
	undeclared := tree(t, `{x: {a: b, c: d}}`)
	require.Equal(t, `{"x":{"c":"d"}}`, oracle.JSON(root.Remove(undeclared, set(t, `{f:x: {f:a: {}}, 'v:1': {}}`))),
		"undeclared fields are deduced")
}

func TestRemoveShares(t *testing.T) {
	v := tree(t, `{s: a, template: {labels: {a: x}}, set: [b]}`).(map[string]any)
	require.Equal(t, fmt.Sprintf("%p", v), fmt.Sprintf("%p", root.Remove(v, set(t, `{f:num: {}, f:set: {'v:"x"': {}}}`))),
		"v itself, when nothing was removed")
	less := root.Remove(v, set(t, `{f:s: {}}`)).(map[string]any)
	require.Equal(t, fmt.Sprintf("%p", v["template"]), fmt.Sprintf("%p", less["template"]),
		"what is not touched is shared")
}

// upstreamExtracts reports whether upstream can be compared with Extract. Before v6.4, structured-merge-diff extracts
// null in place of an empty map or list, and adds null to a list when it extracts an item.
func upstreamExtracts() bool {
	labels := smdpath.NewSet(smdpath.MakePathOrDie("labels"))
	extracted, _ := plain(upstream(map[string]any{"labels": map[string]any{}}).ExtractItems(labels)).(map[string]any)
	return extracted["labels"] != nil
}

func TestExtract(t *testing.T) {
	for _, row := range []struct {
		name, why, value, set string
		want                  string // also upstream's result, unless differs is set
		withKeys              string // empty if it equals want
		differs               string // upstream's result with keys, if it differs
	}{
		{"empty map", "an empty map is owned as such", `{labels: {}}`, `{f:labels: {}}`, `{"labels":{}}`, "", ""},
		{"owned container", "others filled the map that the manager left empty", `{labels: {a: x}}`, `{f:labels: {}}`,
			`{"labels":{}}`, "", `{"labels":null}`},
		{"owned list", "an empty list would own nothing", `{set: [a]}`, `{f:set: {}}`, `{"set":null}`, "", ""},
		{"no set item", "a list with nothing in it is left out", `{s: b, set: [a]}`, `{f:set: {'v:"b"': {}}}`, `null`, "",
			`{"set":null}`},
		{"item", "an item that is owned is extracted whole, or by its keys", `{named: [{name: a, port: 1}]}`,
			`{f:named: {'k:{"name":"a"}': {}}}`,
			`{"named":[{"name":"a","port":1}]}`, `{"named":[{"name":"a"}]}`, ""},
		{"in item", "keys come along on request", `{named: [{name: a, port: 1, proto: UDP}]}`,
			`{f:named: {'k:{"name":"a"}': {f:port: {}}}}`,
			`{"named":[{"port":1}]}`, `{"named":[{"name":"a","port":1}]}`, ""},
		{"defaulted key", "but not those that the item has by default", `{ports: [{port: 1, name: a}]}`,
			`{f:ports: {'k:{"port":1,"proto":"TCP"}': {f:name: {}}}}`,
			`{"ports":[{"name":"a"}]}`, `{"ports":[{"name":"a","port":1}]}`, ""},
		{"nothing of an item", "an item of which nothing is there is left out", `{named: [{name: a}, {name: b}]}`,
			`{f:named: {'k:{"name":"a"}': {f:port: {}}, 'k:{"name":"b"}': {}}}`,
			`{"named":[{"name":"b"}]}`, "", `{"named":[null,{"name":"b"}]}`},
		{"owned item without content", "unless it is owned itself", `{named: [{name: a}]}`,
			`{f:named: {'k:{"name":"a"}': {.: {}, f:port: {}}}}`, `{"named":[{}]}`, `{"named":[{"name":"a"}]}`, ""},
		{"odd elements", "elements that do not fit are passed over", `{labels: {a: x}}`, `{f:labels: {'v:1': {}, f:a: {}}}`,
			`{"labels":{"a":"x"}}`, "", ""},
		{"odd element, same text", "a value is no entry's name", `{labels: {"1": x, a: x}}`,
			`{f:labels: {'v:1': {}, f:a: {}}}`, `{"labels":{"a":"x"}}`, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			v, s := tree(t, row.value), set(t, row.set)
			require.Equal(t, row.want, oracle.JSON(root.Extract(v, s, false)), row.why)
			if row.withKeys == "" {
				row.withKeys = row.want
			}
			require.Equal(t, row.withKeys, oracle.JSON(root.Extract(v, s, true)), row.why)
			if row.differs == "" {
				row.differs = row.withKeys
			}
			if !upstreamExtracts() {
				return
			}
			require.Equal(t, row.differs, oracle.JSON(plain(upstream(v).ExtractItems(upstreamSet(s), smd.WithAppendKeyFields()))),
				"upstream")
		})
	}
	require.Equal(t, `{"set":["a"]}`,
		oracle.JSON(root.Extract(tree(t, `{set: [{}, a]}`), set(t, `{f:set: {'v:"a"': {}}}`), true)),
		"items that nothing can select are left out")
	require.Nil(t, root.Extract(tree(t, `{set: [{}, a]}`), set(t, `{f:set: {'f:': {}}}`), true),
		"also by a field of no name")
	require.Equal(t, `{"x":{"a":1}}`, oracle.JSON(root.Extract(tree(t, `{x: {a: 1}}`), set(t, `{f:x: {f:a: {}}}`), true)),
		"undeclared fields are deduced")
}

func TestReconcile(t *testing.T) {
	for _, row := range []struct {
		name, why, set string
		want           []string
	}{
		{"granular", "what fits stays", `{f:labels: {f:a: {}}, f:set: {'v:"a"': {}}, f:s: {}}`,
			[]string{".s", ".labels.a", `.set[="a"]`}},
		{"map became atomic", "who owned an entry owns the whole", `{f:selector: {f:a: {}, f:b: {}}}`, []string{".selector"}},
		{"list became atomic", "", `{f:args: {'v:"a"': {}}}`, []string{".args"}},
		{"was atomic", "what became granular stays owned as a whole", `{f:labels: {}, f:set: {}}`,
			[]string{".labels", ".set"}},
		{"in item", "below items too", `{f:named: {'k:{"name":"a"}': {.: {}, f:tags: {'v:"x"': {}}}}}`,
			[]string{`.named[name="a"]`, `.named[name="a"].tags[="x"]`}},
		{"nested", "at every level", `{f:template: {f:selector: {f:a: {}}}}`, []string{".template.selector"}},
		{"unknown", "paths that the type does not know stay", `{f:x: {f:a: {}}, f:s: {f:a: {}}}`, []string{".s.a", ".x.a"}},
		{"deduced", "so do those in values without a schema", `{f:free: {f:a: {i:0: {}}}}`, []string{".free.a[0]"}},
		{"untyped atomic", "but this is owned as a whole", `{f:raw: {f:a: {}}}`, []string{".raw"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := set(t, row.set)
			require.ElementsMatch(t, row.want, lines(root.Reconcile(s)), row.why)
			theirs, err := smd.ReconcileFieldSetWithSchema(upstreamSet(s), upstream(nil))
			require.NoError(t, err)
			if theirs == nil {
				theirs = upstreamSet(s)
				require.Same(t, s, root.Reconcile(s), "what does not change is the same set")
			}
			require.ElementsMatch(t, row.want, upstreamLines(theirs), "upstream")
		})
	}
	s := set(t, `{f:a: {f:b: {}}}`)
	atomic := &typed.Type{Map: typed.NewMap(nil, typed.UntypedAtomic()).WithAtomic(true)}
	list := &typed.Type{List: typed.AtomicList(typed.UntypedAtomic())}
	for _, whole := range []*typed.Type{atomic, list, typed.Deduced(), str, {}} {
		require.Same(t, s, whole.Reconcile(s), "nobody owns a whole object")
	}
	require.Equal(t, []string{"[0]"}, lines(setOf(atomic).Reconcile(set(t, `{i:0: {f:b: {}}}`))),
		"whatever selects an item")
	require.Equal(t, []string{"[0]"},
		lines((&typed.Type{Map: typed.NewMap(nil, atomic)}).Reconcile(set(t, `{i:0: {f:b: {}}}`))), "or an entry")
}
