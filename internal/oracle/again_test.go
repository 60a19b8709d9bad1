package oracle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// TestAppliedAgainAroundAnEmptyList: upstream treats a struct that contains only empty lists as missing, because nobody
// can own these. So it removes a struct that is applied again as an empty struct, with the unowned fields in it
// (doc/differences.md, 15).
func TestAppliedAgainAroundAnEmptyList(t *testing.T) {
	s := schemaOf("object")
	s.Properties = map[string]spec.Schema{"on": schemaOf("boolean"), "set": listOf(schemaOf("string"), "set")}
	w := &World{}
	require.NoError(t, w.SetSpec(s))
	thing := func(metadata, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "spec": spec}}
		u.SetGroupVersionKind(Kind("v1"))
		return u
	}
	w.Live = thing(map[string]any{"name": "thing", "uid": "uid", "managedFields": []any{map[string]any{
		"manager": "a", "operation": "Apply", "apiVersion": group + "/v1", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:spec": map[string]any{}},
	}}}, map[string]any{"on": true, "set": []any{}})

	write := Write{
		Apply:   true,
		Version: "v1",
		Manager: "a",
		Object:  thing(map[string]any{"name": "thing"}, map[string]any{}),
	}
	up, now, err := w.Upstream(write)
	require.NoError(t, err)
	require.NotContains(t, up.Object, "spec", "upstream")
	own, err := w.Tenure(write, now)
	require.NoError(t, err)
	require.Equal(t, w.Live.Object, own.Object)
	require.True(t, w.appliedAgain(write, up, own))

	// The same, while another field is dropped.
	w.Live = thing(map[string]any{"name": "thing", "uid": "uid", "labels": map[string]any{"dropped": "x"},
		"managedFields": []any{map[string]any{
			"manager": "a", "operation": "Apply", "apiVersion": group + "/v1", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{
				"f:metadata": map[string]any{"f:labels": map[string]any{"f:dropped": map[string]any{}}},
				"f:spec":     map[string]any{},
			},
		}}}, map[string]any{"on": true, "set": []any{}})
	spec := w.Live.Object["spec"]
	up, now, err = w.Upstream(write)
	require.NoError(t, err)
	require.NotContains(t, up.Object, "spec", "upstream")
	own, err = w.Tenure(write, now)
	require.NoError(t, err)
	require.Equal(t, spec, own.Object["spec"])
	require.Empty(t, own.GetLabels())

	// The same beside an entry of another version, for which the removal is computed with sets of the whole object.
	live := w.Live.Object["metadata"].(map[string]any)
	live["managedFields"] = append(live["managedFields"].([]any), map[string]any{
		"manager": "b", "operation": "Update", "apiVersion": group + "/v2", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:finalizers": map[string]any{}}},
	})
	up, now, err = w.Upstream(write)
	require.NoError(t, err)
	require.NotContains(t, up.Object, "spec", "upstream")
	own, err = w.Tenure(write, now)
	require.NoError(t, err)
	require.Equal(t, spec, own.Object["spec"])
	require.Empty(t, own.GetLabels())
	require.True(t, w.appliedAgain(write, up, own))
}

// TestResetName: if a resource resets metadata.name, upstream removes all of metadata with the last owned field in it
// (doc/differences.md, 31).
func TestResetName(t *testing.T) {
	for _, row := range []struct {
		name, why string
		resets    [][]string
		isRemoved bool // whether upstream removes metadata
	}{
		{"nothing", "the intent owns its name while upstream removes", nil, false},
		{"name", "nobody owns anything in metadata any more", [][]string{{"metadata", "name"}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &World{}
			require.NoError(t, w.SetSpec(spec.Schema{}))
			write := func(annotations map[string]any) Write {
				obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "thing"}}}
				obj.SetGroupVersionKind(Kind("v1"))
				if annotations != nil {
					obj.Object["metadata"].(map[string]any)["annotations"] = annotations
				}
				return Write{Apply: true, Version: "v1", Manager: "a", Object: obj}
			}
			stored, _, err := w.Upstream(write(map[string]any{"n": "1"}))
			require.NoError(t, err)
			w.Store(stored, func() int { return 0 })
			w.resets = row.resets

			up, now, err := w.Upstream(write(nil))
			require.NoError(t, err)
			require.Equal(t, row.isRemoved, up.GetName() == "", row.why)
			own, err := w.Tenure(write(nil), now)
			require.NoError(t, err)
			require.Equal(t, map[string]any{"name": "thing", "uid": "uid"}, own.Object["metadata"])
		})
	}
}

// TestConflictOverNull: a container that was empty before a removal becomes null in upstream, and so conflicts with its
// owners (doc/differences.md, 1).
func TestConflictOverNull(t *testing.T) {
	w := &World{}
	require.NoError(t, w.SetSpec(spec.Schema{}))
	write := func(manager string, content map[string]any) Write {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
		obj.SetGroupVersionKind(Kind("v1"))
		obj.SetName("thing")
		return Write{Apply: manager == "a", Version: "v1", Manager: manager, Object: obj}
	}
	store := func(write Write) {
		stored, _, err := w.Upstream(write)
		require.NoError(t, err)
		w.Store(stored, func() int { return 0 })
	}
	store(write("ctl", map[string]any{}))
	store(write("a", map[string]any{"b": int64(1)}))
	w.resets = [][]string{{"spec", "b"}} // reset from now on, so that a still owns the field that is removed
	store(write("ctl", map[string]any{}))

	again := write("a", map[string]any{"b": nil})
	_, now, upErr := w.Upstream(again)
	require.ErrorContains(t, upErr, `conflict with "ctl"`)
	own, ownErr := w.Tenure(again, now)
	require.NoError(t, ownErr)
	require.Equal(t, map[string]any{}, own.Object["spec"])
	require.True(t, w.conflictsOverNull(again, upErr, ownErr))

	// Any other conflict that Tenure does not report is a difference.
	store(write("ctl", map[string]any{"x": int64(1)}))
	taken := write("a", map[string]any{"x": int64(2)})
	_, _, upErr = w.Upstream(taken)
	require.ErrorContains(t, upErr, ".spec.x")
	require.False(t, w.conflictsOverNull(taken, upErr, nil))
}

// TestDroppedAmongDuplicates: nothing is removed from duplicated items that others own, too. Only a client can write
// such managed fields, because an update that duplicates items becomes their owner. The first items are looked up
// without an index, the others with one.
func TestDroppedAmongDuplicates(t *testing.T) {
	for _, keys := range []int{1, 2, 6} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) { dropAmongDuplicates(t, keys) })
	}
}

func dropAmongDuplicates(t *testing.T, keys int) {
	item := schemaOf("object")
	item.Properties = map[string]spec.Schema{
		"name": schemaOf("string"), "b": schemaOf("string"), "c": schemaOf("string"),
	}
	s := schemaOf("object")
	s.Properties = map[string]spec.Schema{
		"items": extended(listOf(item, "map"), "x-kubernetes-list-map-keys", []any{"name"}),
	}
	w := &World{}
	require.NoError(t, w.SetSpec(s))
	var items []any
	owned := func(fields ...string) map[string]any {
		below := map[string]any{}
		for i := range keys + 1 {
			single := map[string]any{".": map[string]any{}, "f:name": map[string]any{}}
			for _, name := range fields {
				single["f:"+name] = map[string]any{}
			}
			below[fmt.Sprintf(`k:{"name":"%d"}`, i)] = single
		}
		return map[string]any{"f:spec": map[string]any{"f:items": below}}
	}
	for i := range 2 * keys {
		items = append(items, map[string]any{"name": fmt.Sprint(i % keys), "b": fmt.Sprint(i), "c": fmt.Sprint(i)})
	}
	// One item is not duplicated, so that the list certainly stays.
	items = append(items, map[string]any{"name": fmt.Sprint(keys), "c": "1"})
	entry := func(manager, field string) any {
		return map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": group + "/v1", "fieldsType": "FieldsV1",
			"fieldsV1": owned(field),
		}
	}
	w.Live = &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "thing", "uid": "uid", "managedFields": []any{entry("a", "b"), entry("b", "c")},
		},
		"spec": map[string]any{"items": items},
	}}
	w.Live.SetGroupVersionKind(Kind("v1"))
	intent := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "thing"}}}
	intent.SetGroupVersionKind(Kind("v1"))
	write := Write{Apply: true, Version: "v1", Manager: "a", Object: intent}
	up, now, err := w.Upstream(write)
	require.NoError(t, err)
	require.Equal(t, items, up.Object["spec"].(map[string]any)["items"], "upstream")
	own, err := w.Tenure(write, now)
	require.NoError(t, err)
	require.NoError(t, Compare(up, own))
}

// TestAroundWhatStays: bob owns a field around or beside a field that alice drops. Only a client can write such managed
// fields.
func TestAroundWhatStays(t *testing.T) {
	deep, item, s := schemaOf("object"), schemaOf("object"), schemaOf("object")
	deep.Properties = map[string]spec.Schema{"d": schemaOf("string")}
	item.Properties = map[string]spec.Schema{
		"name": schemaOf("string"), "b": schemaOf("string"), "c": schemaOf("string"),
		"set": listOf(schemaOf("string"), "set"), "deep": deep,
	}
	s.Properties = map[string]spec.Schema{
		"items": extended(listOf(item, "map"), "x-kubernetes-list-map-keys", []any{"name"}), "in": item,
	}
	for _, row := range []struct{ name, why, live, alice, bob, want string }{
		{"an item without its key", "its name goes, so all of it goes", "items: [{name: x, b: '1', c: '1'}]",
			`f:items: {'k:{"name":"x"}': {.: {}, f:name: {}, f:b: {}}}`, `f:items: {'k:{"name":"x"}': {f:c: {}}}`,
			"items: null"},
		{"an item that is owned without its key", "the same", "items: [{name: x, b: '1', c: '1'}]",
			`f:items: {'k:{"name":"x"}': {.: {}, f:name: {}, f:b: {}}}`,
			`f:items: {'k:{"name":"x"}': {.: {}, f:c: {}}}`, "items: null"},
		{"a struct in an item that is owned without its key", "its name, which nobody owns, goes with the item",
			"items: [{name: x, b: '1', deep: {d: '1'}}]", `f:items: {'k:{"name":"x"}': {.: {}, f:b: {}}}`,
			`f:items: {'k:{"name":"x"}': {.: {}, f:deep: {f:d: {}}}}`, "items: null"},
		{"an empty list", "nobody can own it", "in: {b: '1', set: []}", "f:in: {f:b: {}}", "f:in: {f:set: {}}", "null"},
		{"a list with items of nobody", "they stay", "in: {b: '1', set: [a]}",
			"f:in: {f:b: {}}", "f:in: {f:set: {}}", "in: {set: [a]}"},
		{"a list of which all is dropped", "it is bob's", "in: {b: '1', set: [a]}",
			`f:in: {f:b: {}, f:set: {'v:"a"': {}}}`, "f:in: {f:set: {}}", "in: {set: null}"},
		{"a struct with fields of nobody", "they stay", "in: {b: '1', deep: {d: '1'}}",
			"f:in: {.: {}, f:b: {}}", "f:in: {f:deep: {}}", "in: {deep: {d: '1'}}"},
		{"a struct of which all is dropped", "it is bob's", "in: {b: '1', deep: {d: '1'}}",
			"f:in: {f:b: {}, f:deep: {f:d: {}}}", "f:in: {f:deep: {}}", "in: {deep: null}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &World{}
			require.NoError(t, w.SetSpec(s))
			thing := func(metadata map[string]any, spec string) *unstructured.Unstructured {
				obj := map[string]any{}
				require.NoError(t, yaml.Unmarshal([]byte("spec: {"+spec+"}"), &obj))
				obj["metadata"] = metadata
				u := &unstructured.Unstructured{Object: obj}
				u.SetGroupVersionKind(Kind("v1"))
				return u
			}
			entry := func(manager, owned string) any {
				fields := map[string]any{}
				require.NoError(t, yaml.Unmarshal([]byte("f:spec: {"+owned+"}"), &fields))
				return map[string]any{
					"manager": manager, "operation": "Apply", "apiVersion": group + "/v1", "fieldsType": "FieldsV1",
					"fieldsV1": fields,
				}
			}
			w.Live = thing(map[string]any{
				"name": "thing", "uid": "uid",
				"managedFields": []any{entry("alice", row.alice), entry("bob", row.bob)},
			}, row.live)
			intent := thing(map[string]any{"name": "thing"}, "")
			delete(intent.Object, "spec")
			write := Write{Apply: true, Version: "v1", Manager: "alice", Object: intent}
			up, now, err := w.Upstream(write)
			require.NoError(t, err)
			want := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(row.want), &want))
			if row.want == "null" {
				want = nil
			}
			got, _ := up.Object["spec"].(map[string]any)
			require.Equal(t, want, got, row.why)
			own, err := w.Tenure(write, now)
			require.NoError(t, err)
			require.NoError(t, Compare(up, own))
		})
	}
}
