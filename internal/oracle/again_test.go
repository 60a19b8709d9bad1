package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestAppliedAgainAroundAnEmptyList: upstream takes a struct for gone in which
// nothing is left but empty lists, for these nobody can own. So it removes what is
// applied again as an empty struct, with what nobody owns in it (doc/differences.md,
// 15).
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

	// The same, while something else is dropped.
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
	require.True(t, w.appliedAgain(write, up, own))
}

// TestResetName: where a resource resets metadata.name, upstream removes all of metadata with the last field in it that
// anybody owned (doc/differences.md, 31).
func TestResetName(t *testing.T) {
	for _, row := range []struct {
		name, why string
		resets    [][]string
		isRemoved bool // by upstream
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
