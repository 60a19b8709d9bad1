package fieldmanager_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestPruneFollowsTheLastVersion: fields a and b swap names between v1 and v2. A manager that applied a at v1 and
// applies a at v2 dropped the field that v2 calls b, although the names are equal (spec rule 6.1).
func TestPruneFollowsTheLastVersion(t *testing.T) {
	swap := changing(func(from, to string, obj map[string]any) error {
		if from == to {
			return nil
		}
		a, hasA := obj["a"]
		b, hasB := obj["b"]
		delete(obj, "a")
		delete(obj, "b")
		if hasA {
			obj["b"] = a
		}
		if hasB {
			obj["a"] = b
		}
		return nil
	})
	live, err := writetest.Apply(anyManager(t, "v1"), nil, anyAt(t, "v1", "a: x"), "alice", false)
	require.NoError(t, err)
	m := anyManager(t, "v2", func(o *fieldmanager.Options) { o.Converter = swap })
	out, err := writetest.Apply(m, atVersion(t, swap, live, "v2"), anyAt(t, "v2", "a: z"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, "z", contents(out)["a"])
	require.NotContains(t, contents(out), "b", "v2's name of what was applied at v1 and is not any more")
}

// TestPruneConvertsInOrder: other managers' fields are restored at the versions of their entries: first at the version
// of the last apply, so that no conversion gets an object without the fields that it needs; then in sorted order
// (spec rule 6.1).
func TestPruneConvertsInOrder(t *testing.T) {
	for _, row := range []struct {
		name, why string
		change    func(from, to string, obj map[string]any) error
	}{
		{"first the last apply's", "v1 can't do without keep, which the last apply's version puts back", func(
			_, to string, obj map[string]any,
		) error {
			if to == "v1" && obj["keep"] == nil {
				return errors.New("keep is required")
			}
			return nil
		}},
		{"then as they sort", "there are ways from and to v2, and up, and none down", func(
			from, to string, _ map[string]any,
		) error {
			if from > to && from != "v2" && to != "v2" {
				return fmt.Errorf("from %s to %s", from, to)
			}
			return nil
		}},
	} {
		// Entries of the last apply's version are before other entries, or after them.
		for _, first := range []string{"aaron", "zoe"} {
			var live runtime.Object
			for _, step := range []struct{ version, manager, text string }{
				{"v2", first, "a: x"}, {"v3", "bob", "b: x"}, {"v1", "carol", "c: x"},
				{"v2", "alice", "keep: x\ndrop: x"}, {"v4", "dan", "d: x"},
			} {
				if live != nil {
					live = atVersion(t, fieldmanager.NoneConverter{}, live, step.version)
				}
				var err error
				live, err = writetest.Apply(
					anyManager(t, step.version, func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} }),
					live,
					anyAt(t, step.version, step.text),
					step.manager,
					false,
				)
				require.NoError(t, err)
			}
			var warnings []fieldmanager.Warning
			m := anyManager(t, "v2", func(o *fieldmanager.Options) { o.Converter = changing(row.change) },
				warningsTo(&warnings))
			out, err := writetest.Apply(m,
				atVersion(t, fieldmanager.NoneConverter{}, live, "v2"),
				anyAt(t, "v2", "keep: x"),
				"alice",
				false,
			)
			require.NoError(t, err)
			require.NotContains(t, contents(out), "drop", "%s: %s", row.name, row.why)
			for _, name := range []string{"keep", "a", "b", "c", "d"} {
				require.Equal(t, "x", contents(out)[name], row.name)
			}
		}
	}
}

// TestPruneOfManyVersions shows the maximum number of versions with which dropped fields are still removed
// (spec rule 12.5). Several entries of one version are one version.
func TestPruneOfManyVersions(t *testing.T) {
	for _, row := range []struct {
		name, why string
		version   func(i int) string
		entries   int
		removed   bool
	}{
		{"as many as may be", "", func(i int) string { return fmt.Sprintf("example.dev/v%d", i+2) }, 100, true},
		{"one more", "nothing is removed", func(i int) string { return fmt.Sprintf("example.dev/v%d", i+2) }, 101, false},
		{"of one version", "versions count, not entries", func(int) string { return "example.dev/v2" }, 150, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var warnings []fieldmanager.Warning
			m := anyManager(t, "v1", func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} },
				warningsTo(&warnings))
			first, err := writetest.Apply(m, nil, anyAt(t, "v1", "a: x\nb: x"), "alice", false)
			require.NoError(t, err)
			live := stored(first)
			own := contents(live)["metadata"].(map[string]any)["managedFields"].([]any)
			live.Object["metadata"].(map[string]any)["managedFields"] = append(own, entriesOf(row.entries, row.version)...)
			out, err := writetest.Apply(m, live, anyAt(t, "v1", "a: x"), "alice", false)
			require.NoError(t, err)
			require.Equal(t, row.removed, contents(out)["b"] == nil, row.why)
			require.Equal(t, row.removed, len(warnings) == 0, "%v", warnings)
		})
	}
}

// TestNothingDropped: an intent that drops nothing removes nothing, and calls no converter for removal; the host gets a
// warning only about the entry that can't be compared.
func TestNothingDropped(t *testing.T) {
	live, err := writetest.Apply(newManager(t, "v1"), nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	atV2 := stored(live)
	atV2.SetAPIVersion("example.dev/v2")
	live, err = writetest.Apply(newManager(t, "v2"), atV2, object(t, "v2", "spec: {count: 1}"), "bob", false)
	require.NoError(t, err)
	var warnings []fieldmanager.Warning
	m := newManager(t, "v2", func(o *fieldmanager.Options) { o.Converter = failing{} },
		warningsTo(&warnings))
	_, err = writetest.Apply(m, stored(live), object(t, "v2", "spec: {count: 2}"), "bob", false)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Equal(t, "alice", warnings[0].Manager.Manager)
}

// TestWhatStoodBelow: if a scalar replaces a container, managers that owned fields in the container lose them, although
// these losses are not conflicts.
func TestWhatStoodBelow(t *testing.T) {
	text := &typed.Type{Scalar: typed.String}
	m, err := fieldmanager.New(widgetKind, objectType(structOf(map[string]*typed.Type{
		"either": {Scalar: typed.String, Map: typed.NewMap(nil, text)}, "text": text,
	})), fieldmanager.Options{})
	require.NoError(t, err)
	intent := func(text string) *unstructured.Unstructured { return object(t, "v1", "kind: Widget\nspec: "+text) }
	live, err := writetest.Apply(m, nil, intent("{either: {k: v}, text: a}"), "alice", false)
	require.NoError(t, err)
	out, err := writetest.Apply(m, stored(live), intent("{either: z}"), "bob", false)
	require.NoError(t, err)
	require.Equal(
		t,
		"alice Apply example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\nbob Apply example.dev/v1 {\"f:spec\":{\"f:either\":{}}}\n",
		owners(t, out),
	)
}

// TestPruneBeyondLimits: if an object exceeds a limit and the removal depends on all of the object, nothing is removed
// (spec rule 6.3), and the host gets a warning. Here the intent owns an empty map in which the manager owned an entry.
func TestPruneBeyondLimits(t *testing.T) {
	type m = map[string]any
	text := &typed.Type{Scalar: typed.String}
	item := structOf(map[string]*typed.Type{"name": text, "free": typed.Deduced()})
	var warnings []fieldmanager.Warning
	fm, err := fieldmanager.New(widgetKind, objectType(structOf(map[string]*typed.Type{
		"text": text, "items": {List: typed.KeyedList(item, "name")},
		"hints": {Map: typed.NewMap(nil, text)},
	})), fieldmanager.Options{Warnings: func(w fieldmanager.Warning) { warnings = append(warnings, w) }})
	require.NoError(t, err)
	for _, row := range []struct {
		name, why string
		depth     int
		pruned    bool
	}{
		{"small", "", 3, true},
		{"huge", "each level is there twice in the one around it, so that it has 2^30 values", 30, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			warnings = nil
			value := any("x")
			for range row.depth {
				value = []any{value, value}
			}
			live := object(t, "v1", "kind: Widget\nspec: {text: a, hints: {k: v}}")
			live.Object["spec"].(m)["items"] = []any{m{"name": "a", "free": value}, m{"name": "a"}, m{"name": "b"}}
			live.Object["metadata"].(m)["managedFields"] = []any{fieldsEntry("alice", "Apply", "v1", m{"f:spec": m{
				"f:text": m{}, "f:hints": m{"f:k": m{}}, "f:items": m{`k:{"name":"a"}`: m{".": m{}, "f:name": m{}}},
			}}), fieldsEntry("bob", "Apply", "v1", m{"f:spec": m{"f:items": m{
				`k:{"name":"b"}`: m{".": m{}, "f:name": m{}},
			}}})}
			intent := object(t, "v1", "kind: Widget\nspec: {text: a, hints: {}}")
			out, err := writetest.Apply(fm, live, intent, "alice", false)
			require.NoError(t, err)
			require.Equal(t, row.pruned, len(contents(out)["spec"].(m)["items"].([]any)) == 1, row.why)
			require.Equal(t, row.pruned, len(warnings) == 0, "%v", warnings)
			require.Contains(t, owners(t, out), `alice Apply example.dev/v1 {"f:spec":{"f:hints":{},"f:text":{}}}`+"\n")
		})
	}
}

// TestPruneKeepsDuplicatesOfOthers: a manager that added duplicates owns the item but nothing in it (spec rule 5.4).
// The duplicates stay when another manager drops its item of the same list (spec rule 6.1).
func TestPruneKeepsDuplicatesOfOthers(t *testing.T) {
	text := &typed.Type{Scalar: typed.String}
	item := structOf(map[string]*typed.Type{
		"name": text, "tags": {List: typed.SetList(text)},
	})
	m, err := fieldmanager.New(widgetKind, objectType(structOf(map[string]*typed.Type{
		"text": text, "items": {List: typed.KeyedList(item, "name")},
	})), fieldmanager.Options{})
	require.NoError(t, err)
	widgetOf := func(text string) *unstructured.Unstructured {
		return object(t, "v1", "kind: Widget\nspec: {text: a, items: "+text+"}")
	}
	live, err := writetest.Apply(m, nil, widgetOf("[{name: b}]"), "alice", false)
	require.NoError(t, err)
	twice := "{name: a, tags: []}, {name: a, tags: []}"
	updated := widgetOf("[" + twice + ", {name: b}]")
	live, err = writetest.Update(m, stored(live), updated, "ctl")
	require.NoError(t, err)
	out, err := writetest.Apply(m, stored(live), widgetOf("[]"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, contents(widgetOf("[" + twice + "]"))["spec"], contents(out)["spec"])
	require.Equal(t, `alice Apply example.dev/v1 {"f:spec":{"f:text":{}}}
ctl Update example.dev/v1 {"f:spec":{"f:items":{"k:{\"name\":\"a\"}":{}}}}
`, owners(t, out))
}

// TestPruneOfDuplicatedItems: nobody owns the content of duplicated items, so nothing is removed from duplicates that
// somebody still owns (spec rule 6.1).
func TestPruneOfDuplicatedItems(t *testing.T) {
	text := &typed.Type{Scalar: typed.String}
	item := structOf(map[string]*typed.Type{"name": text, "text": text})
	m, err := fieldmanager.New(widgetKind, objectType(structOf(map[string]*typed.Type{
		"text": text, "items": {List: typed.KeyedList(item, "name")},
	})), fieldmanager.Options{})
	require.NoError(t, err)
	widget := func(items string) *unstructured.Unstructured {
		return object(t, "v1", "kind: Widget\nspec: {text: a, items: ["+items+"]}")
	}
	live, err := writetest.Apply(m, nil, widget("{name: a, text: x}"), "alice", false)
	require.NoError(t, err)
	live, err = writetest.Apply(m, stored(live), widget("{name: a}"), "bob", false)
	require.NoError(t, err)
	untracked := stored(live)
	untracked.Object["spec"] = widget("{name: a, text: x}, {name: a, text: x}").Object["spec"]
	out, err := writetest.Apply(m, untracked, widget(""), "alice", false)
	require.NoError(t, err)
	require.Equal(t, untracked.Object["spec"], contents(out)["spec"])
}

// TestDroppedMetadata: fields of metadata that nobody owned stay when the last owned field of metadata is dropped,
// whatever metadata the intent has (spec rule 2.7; doc/differences.md, 31).
func TestDroppedMetadata(t *testing.T) {
	type m = map[string]any
	intent := func(tree m) *unstructured.Unstructured {
		out := m{"apiVersion": "v1", "kind": "ConfigMap"}
		maps.Copy(out, tree)
		return &unstructured.Unstructured{Object: out}
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	fm, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	for name, second := range map[string]m{
		"empty":                 {"metadata": m{}},
		"null":                  {"metadata": nil},
		"not mentioned":         {},
		"not mentioned, data":   {"data": m{"k": "v"}},
		"without its name":      {"metadata": m{"labels": m{}}},
		"with its name":         {"metadata": m{"name": "thing"}},
		"with another's labels": {"metadata": m{"annotations": m{"b": "2"}}},
	} {
		for _, isStruct := range []bool{false, true} {
			var live runtime.Object
			if isStruct {
				live = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
			}
			out, err := writetest.Apply(
				fm,
				live,
				intent(m{"metadata": m{"name": "thing", "labels": m{"a": "1"}}}),
				"bob",
				true,
			)
			require.NoError(t, err)
			accessor, err := meta.Accessor(out)
			require.NoError(t, err)
			accessor.SetUID("uid")
			out, err = writetest.Apply(fm, out, intent(second), "bob", true)
			require.NoError(t, err)
			accessor, err = meta.Accessor(out)
			require.NoError(t, err)
			require.Equal(t, "thing", accessor.GetName(), name)
			require.EqualValues(t, "uid", accessor.GetUID(), name)
			require.Empty(t, accessor.GetLabels(), name)
		}
	}
}
