package conformance_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestDroppedInLongLists: a field that is dropped inside an item goes, and the same intent again changes nothing,
// however long the list is, and in whatever order.
func TestDroppedInLongLists(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	for _, n := range []int{1, 8, 9, 64, 65, 200} {
		intent := func(drop int) *unstructured.Unstructured {
			var list []any
			for i := n; i > 0; i-- { // not in the order of the set
				c := map[string]any{"name": fmt.Sprintf("c%03d", i), "image": "a"}
				if i == drop {
					delete(c, "image")
				}
				list = append(list, c)
			}
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": list}}}}}
		}
		empty := &appsv1.Deployment{}
		empty.SetGroupVersionKind(kind)
		live, err := writetest.Apply(m, empty, intent(0), "alice", false)
		require.NoError(t, err)
		live.(*appsv1.Deployment).UID = "uid"
		dropped := (n + 1) / 2
		live, err = writetest.Apply(m, live, intent(dropped), "alice", false)
		require.NoError(t, err)
		d := live.(*appsv1.Deployment)
		require.Len(t, d.Spec.Template.Spec.Containers, n)
		require.Empty(t, d.Spec.Template.Spec.Containers[n-dropped].Image, "of %d", n)
		require.NotContains(t, string(d.ManagedFields[0].FieldsV1.GetRawBytes()),
			fmt.Sprintf(`{"name":"c%03d"}":{".":{},"f:image"`, dropped))
		again, err := m.Apply(t.Context(), live, intent(dropped), fieldmanager.ApplyOptions{Manager: "alice"})
		require.NoError(t, err)
		require.True(t, again.NoOp(), "of %d", n)
	}
}
