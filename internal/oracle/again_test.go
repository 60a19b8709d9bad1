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
}
