package managedfields_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/managedfields"
)

// TestManyEntries shows that searching entries one by one gives the same results as
// hashing: around the number from which entries are hashed nothing changes.
func TestManyEntries(t *testing.T) {
	for n := 14; n <= 19; n++ {
		var list []metav1.ManagedFieldsEntry
		var tree []any
		add := func(manager string, field string) {
			list = append(list,
				metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(`{"f:` + field + `":{}}`)})
			tree = append(tree,
				map[string]any{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:" + field: map[string]any{}}})
		}
		var want []string
		for i := range n {
			add(fmt.Sprintf("m%02d", i), "x")
			want = append(want, fmt.Sprintf("m%02d Update v1 - x", i))
		}
		add("m03", "later")
		want[3] = "m03 Update v1 - later"
		decoded, err := managedfields.Decode(list)
		require.NoError(t, err)
		require.Equal(t, want, text(decoded), "the later of two counts, in the place of the earlier")
		decoded, err = managedfields.DecodeTree(tree)
		require.NoError(t, err)
		require.Equal(t, want, text(decoded))

		capped := decoded.Cap(2)
		require.Len(t, capped, 2)
		require.Equal(t, []string{fmt.Sprintf("m%02d Update v1 - x", n-1)}, text(capped)[:1])
		require.Equal(t, "ancient-changes Update v1 - later x", text(capped)[1])
	}
}

// TestTooMany shows the limit on entries (spec rule 12.4), at it and one beyond.
func TestTooMany(t *testing.T) {
	const want = `managedFields[10000] of manager "": 10001 entries, expected at most 10000`
	_, err := managedfields.Decode(make([]metav1.ManagedFieldsEntry, limits.MaxEntries+1))
	require.EqualError(t, err, want)
	_, err = managedfields.DecodeTree(make([]any, limits.MaxEntries+1))
	require.EqualError(t, err, want)
}
