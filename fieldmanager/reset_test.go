package fieldmanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestReset: which lists of managed fields clear them all (spec rule 2.6).
func TestReset(t *testing.T) {
	for _, row := range []struct {
		name, why string
		list      []metav1.ManagedFieldsEntry
		tree      []any
		want      bool
	}{
		{"missing", "a client that does not know the field resets nothing", nil, nil, false},
		{"empty", "an empty list that is there drops them all", []metav1.ManagedFieldsEntry{}, []any{}, true},
		{"one empty entry", "so does an empty entry", []metav1.ManagedFieldsEntry{{}}, []any{map[string]any{}}, true},
		{"two empty entries", "but not two", []metav1.ManagedFieldsEntry{{}, {}}, []any{map[string]any{}, map[string]any{}},
			false},
		{"an entry", "", []metav1.ManagedFieldsEntry{{Manager: "a"}}, []any{map[string]any{"manager": "a"}}, false},
		{"an empty time", "anything in it makes it an entry", []metav1.ManagedFieldsEntry{{Time: &metav1.Time{}}},
			[]any{map[string]any{"time": nil}}, false},
		{"no map", "", nil, []any{"x"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: row.list}}
			require.Equal(t, row.want, isReset(obj), row.why)
			metadata := map[string]any{"managedFields": row.tree}
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
			require.Equal(t, row.want, isReset(u), row.why)
		})
	}
}
