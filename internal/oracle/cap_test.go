package oracle

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestCapOfOneSecond: an update that sorts before ancient-changes by its name alone is merged into it. Upstream drops the
// entry of ancient-changes, with what it owns (doc/differences.md, 35).
func TestCapOfOneSecond(t *testing.T) {
	text := schemaOf("string")
	root := schemaOf("object")
	root.AdditionalProperties = &spec.SchemaOrBool{Schema: &text}
	w := &World{}
	require.NoError(t, w.SetSpec(root))

	fields, entries := map[string]any{}, []any{}
	add := func(manager string, second int) {
		fields[manager] = "x"
		entries = append(entries, map[string]any{
			"manager": manager, "operation": "Update", "apiVersion": Kind("v1").GroupVersion().String(),
			"time": fmt.Sprintf("2026-01-01T00:00:%02dZ", second), "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:" + manager: map[string]any{}}},
		})
	}
	add("aa", 5)
	add(managedfields.Ancient, 5)
	for i := range 8 {
		add(fmt.Sprint("manager-", i), 10+i)
	}
	object := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "thing", "uid": "uid", "managedFields": entries}, "spec": fields,
		}}
		u.SetGroupVersionKind(Kind("v1"))
		return u.DeepCopy()
	}
	w.Store(object(), func() int { return 0 })
	fields["eleventh"] = "x"
	write := Write{Object: object(), Version: "v1", Manager: "eleventh"}

	theirs, now, err := w.Upstream(write)
	require.NoError(t, err)
	ours, err := w.Tenure(write, now)
	require.NoError(t, err)
	for _, row := range []struct {
		obj  *unstructured.Unstructured
		lost []string
	}{{theirs, []string{managedfields.Ancient}}, {ours, nil}} {
		require.Len(t, row.obj.GetManagedFields(), 10)
		l, _, err := managedfields.Read(row.obj)
		require.NoError(t, err)
		owned := l.Owned(Kind("v1").GroupVersion().String())
		var lost []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !owned.Has(fieldpath.Fields("spec", name)) {
				lost = append(lost, name)
			}
		}
		require.Equal(t, row.lost, lost)
	}
}
