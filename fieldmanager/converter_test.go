package fieldmanager_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// plainly converts like NoneConverter.
func plainly(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	return fieldmanager.NoneConverter{}.Convert(context.Background(), obj, to)
}

func tree(keyvals ...any) runtime.Object {
	out := map[string]any{}
	for i := 0; i < len(keyvals); i += 2 {
		out[keyvals[i].(string)] = keyvals[i+1]
	}
	return &unstructured.Unstructured{Object: out}
}

// TestConvertersThatAreWrong has converters that return wrong results. An entry of the other version is then kept
// unchanged, and the host gets a warning; an object of another version is at fault (spec rules 6.3 and 10.1).
func TestConvertersThatAreWrong(t *testing.T) {
	endless := map[string]any{}
	endless["a"], endless["b"] = endless, endless
	for _, row := range []struct {
		name, why string
		result    runtime.Object
		err       error
		want      string
	}{
		{"error", "", nil, errWebhook, "webhook is down"},
		{"nothing", "", nil, nil, "converter: expected an object, got a nil <nil>"},
		{"typed nothing", "", (*widget)(nil), nil, "converter: expected an object, got a nil *writetest.Widget"},
		{"another version", "", tree("apiVersion", "example.dev/v7", "kind", "Thing"), nil,
			"Thing, got example.dev/v7 Thing"},
		{"another kind", "", tree("kind", "Other"), nil, "Thing, got  Other"},
		{"no JSON", "", tree("kind", "Thing", "spec", struct{}{}), nil, "converter: .spec: "},
		{"endless", "what it returns need have no bounds", tree("kind", "Thing", "spec", endless), nil, "converter: "},
		{"no such version", "", nil, runtime.NewNotRegisteredErrForKind("x", thingKind), "the version does not exist"},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, err := writetest.Apply(
				newManager(t, "v1"),
				nil,
				object(t, "v1", "spec: {text: a, count: 1}"),
				"alice",
				false,
			)
			require.NoError(t, err)
			atV2 := stored(live)
			atV2.SetAPIVersion("example.dev/v2")
			var warnings []fieldmanager.Warning
			wrong := convert(func(runtime.Object, schema.GroupVersion) (runtime.Object, error) { return row.result, row.err })
			m := newManager(t, "v2", func(o *fieldmanager.Options) { o.Converter = wrong },
				warningsTo(&warnings))
			out, err := writetest.Apply(m, atV2, object(t, "v2", "spec: {text: b}"), "bob", false)
			require.NoError(t, err, row.why)
			require.Equal(t, owners(t, live)+"bob Apply example.dev/v2 {\"f:spec\":{\"f:text\":{}}}\n", owners(t, out))
			require.Len(t, warnings, 1)
			require.ErrorContains(t, warnings[0].Err, row.want, row.why)

			out, err = writetest.Apply(m, atV2, object(t, "v2", "spec: {text: a}"), "alice", false)
			require.NoError(t, err)
			require.Equal(t, int64(1), contents(out)["spec"].(map[string]any)["count"], "nothing is removed")

			_, err = writetest.Apply(m, stored(live), object(t, "v2", "spec: {text: b}"), "bob", false)
			requireRole(t, fieldmanager.LiveObject, err)
			updated := stored(live)
			updated.Object["spec"].(map[string]any)["text"] = "c"
			_, err = writetest.Update(m, atV2, updated, "ctl")
			requireRole(t, fieldmanager.NewObject, err)
			kept := m.UpdateNoErrors(t.Context(), atV2, updated, fieldmanager.UpdateOptions{Manager: "ctl"})
			require.Equal(t, owners(t, live), owners(t, kept))
		})
	}
}

// TestConvertersThatFailLater lets each conversion of a write fail in turn, while dropped fields are removed. Then
// nothing is removed, and the write succeeds (spec rule 6.3).
func TestConvertersThatFailLater(t *testing.T) {
	first, err := writetest.Apply(newManager(t, "v1"), nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	second, err := writetest.Apply(newManager(
		t,
		"v1",
	), stored(first), object(t, "v1", "spec: {text: a, labels: {a: x}}"), "bob", false)
	require.NoError(t, err)
	live := stored(second)
	live.SetAPIVersion("example.dev/v2")
	removed := 0
	for fail := range 12 {
		calls := 0
		m := newManager(
			t,
			"v2",
			func(o *fieldmanager.Options) {
				o.Converter = convert(func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
					if calls++; calls == fail+1 {
						return nil, errWebhook
					}
					return plainly(obj, to)
				})
			},
		)
		out, err := writetest.Apply(m, live, object(t, "v2", "spec: {text: a}"), "alice", false)
		require.NoError(t, err, "call %d fails", fail)
		spec := contents(out)["spec"].(map[string]any)
		if spec["count"] == nil {
			removed++
			require.GreaterOrEqual(t, calls, 1)
		}
		require.Equal(t, "a", spec["text"])
		require.Equal(t, map[string]any{"a": "x"}, spec["labels"])
		require.Contains(t, owners(t, out), "alice Apply example.dev/v2 {\"f:spec\":{\"f:text\":{}}}")
		require.Contains(t, owners(t, out), "bob Apply example.dev/v1 ")
	}
	require.Positive(t, removed, "without a failure what was dropped is removed")
	require.Less(t, removed, 12)

	// An entry whose version no longer exists is skipped when other entries are compared.
	gone := newManager(
		t,
		"v2",
		func(o *fieldmanager.Options) {
			o.Converter = convert(func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
				if to.Version == "v1" {
					return nil, runtime.NewNotRegisteredErrForKind("x", to.WithKind("Thing"))
				}
				return plainly(obj, to)
			})
		},
	)
	atV2, err := writetest.Apply(newManager(t, "v2"), live, object(t, "v2", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	out, err := writetest.Apply(gone, stored(atV2), object(t, "v2", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	require.NotContains(t, contents(out)["spec"], "count")
}

// TestDefaultersThatAreWrong has defaulters that break their contract.
func TestDefaultersThatAreWrong(t *testing.T) {
	for _, row := range []struct {
		name, why string
		f         func(runtime.Object)
		want      string
	}{
		{"metadata", "where managed fields could not stand",
			func(o runtime.Object) { o.(*unstructured.Unstructured).Object["metadata"] = "x" },
			"defaulting (x; example.dev/v1, Kind=Thing): metadata: expected a map, got string"},
		{"managed fields", "what it does to them does not count", func(o runtime.Object) {
			o.(*unstructured.Unstructured).Object["metadata"].(map[string]any)["managedFields"] = "x"
		}, ""},
		{"lists and maps", "it has a copy of its own", func(o runtime.Object) {
			spec := contents(o)["spec"].(map[string]any)
			spec["set"].([]any)[0] = "changed"
			spec["labels"].(map[string]any)["a"] = "changed"
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, "v1", func(o *fieldmanager.Options) { o.Defaulter = row.f })
			intent := object(t, "v1", "spec: {set: [a], labels: {a: x}}")
			intent.Object["spec"].(map[string]any)["atomic"] = []any(nil)
			before := intent.DeepCopy()
			out, err := writetest.Apply(m, nil, intent, "alice", false)
			require.Equal(t, before, intent)
			if row.want != "" {
				require.EqualError(t, err, row.want, row.why)
				return
			}
			require.NoError(t, err)
			require.Contains(t, owners(t, out), "alice Apply")
		})
	}

	// A Go struct can't hold a value that does not fit its fields.
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Defaulter = func(runtime.Object) {} })
	live := newWidget(widgetSpec{Text: "a"})
	live.UID = "uid"
	_, err := writetest.Apply(m, live, asTreeWith(t, newWidget(widgetSpec{}), "count", 1.5), "alice", false)
	require.ErrorContains(t, err, "*writetest.Widget: ")

	// A Go struct may hold a value that JSON can't represent; it does not matter if nobody applies it.
	m = widgetManager(t, "v1", func(set *fieldmanager.Options) {
		set.Defaulter = func(o runtime.Object) { o.(*counted).Large = math.MaxUint64 }
	})
	given := &counted{Widget: *live}
	out, err := writetest.Apply(m, given, asTree(t, newWidget(widgetSpec{Text: "b"})), "alice", true)
	require.NoError(t, err)
	require.Equal(t, uint64(math.MaxUint64), out.(*counted).Large)
	require.Zero(t, given.Large, "it has a copy of its own")
}

// TestUpdatesThatChangeNothing has updates with the same object as live, or nearly the same (spec rule 2.3).
func TestUpdatesThatChangeNothing(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	for _, row := range []struct {
		name, why string
		change    func(obj map[string]any)
		changed   bool
	}{
		{"nothing", "", func(map[string]any) {}, false},
		{"no managed fields", "a client that does not know them",
			func(o map[string]any) { delete(o["metadata"].(map[string]any), "managedFields") }, false},
		{"a field more", "", func(o map[string]any) { o["spec"].(map[string]any)["count"] = int64(1) }, true},
		{"a field less", "what is removed is owned by nobody", func(o map[string]any) { delete(o, "spec") }, true},
		{"another field", "as many", func(o map[string]any) { delete(o, "spec"); o["status"] = map[string]any{} }, true},
		{"a label", "", func(o map[string]any) { o["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"} }, true},
		{"another name", "nobody owns it", func(o map[string]any) { o["metadata"].(map[string]any)["name"] = "z" }, false},
		{"no name", "", func(o map[string]any) { delete(o["metadata"].(map[string]any), "name") }, false},
		{"no metadata", "its managed fields count as missing", func(o map[string]any) { o["metadata"] = nil }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			updated := stored(live)
			row.change(updated.Object)
			before := updated.DeepCopy()
			out, err := writetest.Update(m, stored(live), updated, "ctl")
			require.NoError(t, err)
			require.Equal(t, row.changed, owners(t, live) != owners(t, out), row.why)
			require.Equal(t, before, updated)
		})
	}
	odd := stored(object(t, "v1", "spec: {text: a}"))
	odd.Object["metadata"] = "x"
	_, err = writetest.Update(m, stored(live), odd, "ctl")
	requireRole(t, fieldmanager.NewObject, err)
	require.Equal(t, odd, m.UpdateNoErrors(t.Context(), stored(live), odd, fieldmanager.UpdateOptions{Manager: "ctl"}))
	_, err = writetest.Apply(m, odd, object(t, "v1", ""), "alice", false)
	requireRole(t, fieldmanager.LiveObject, err)
	_, err = writetest.Apply(m, nil, odd, "alice", false)
	requireRole(t, fieldmanager.AppliedObject, err)
	free, err := fieldmanager.New(thingKind, anyType{}, fieldmanager.Options{})
	require.NoError(t, err)
	for _, given := range []struct{ live, intent runtime.Object }{{odd, object(t, "v1", "")}, {nil, odd}} {
		_, err = writetest.Apply(free, given.live, given.intent, "alice", false)
		require.ErrorContains(t, err, "metadata: expected a map, got string", "also where the type would let it pass")
	}
	_, err = writetest.Update(free, stored(live), odd, "ctl")
	require.ErrorContains(t, err, "metadata: expected a map, got string")
	require.Equal(
		t,
		runtime.Object(odd),
		m.UpdateNoErrors(t.Context(), (*unstructured.Unstructured)(nil), odd, fieldmanager.UpdateOptions{Manager: "ctl"}),
	)
	require.Nil(
		t,
		m.UpdateNoErrors(
			t.Context(),
			stored(live),
			(*unstructured.Unstructured)(nil),
			fieldmanager.UpdateOptions{Manager: "ctl"},
		),
	)
}
