package apimachinery_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestNumbersOfGoEverywhere: an object that is written in Go may have numbers of any Go type. Package typed accepts all
// of them; runtime.DeepCopyJSON accepts only two.
func TestNumbersOfGoEverywhere(t *testing.T) {
	for _, n := range []any{
		1, int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1), float32(1),
		float64(1),
	} {
		for _, h := range []host{customs(), servedCustoms(), schemaless()} {
			t.Run(fmt.Sprintf("%T, %s", n, h.name), func(t *testing.T) {
				widget := func(n any) *unstructured.Unstructured {
					u := &unstructured.Unstructured{
						Object: tree{"metadata": tree{"name": "w", "uid": "u"}, "spec": tree{"look": tree{"size": n}}},
					}
					u.SetGroupVersionKind(widgetKind("v2"))
					return u
				}
				m := h.tenure("v2", "", start)
				live, err := m.Apply(h.empty("v2"), widget(n), "a", false)
				require.NoError(t, err)
				require.EqualValues(t, 1, treeOf(live)["spec"].(tree)["look"].(tree)["size"])

				live = &unstructured.Unstructured{Object: trees.Copy(live.(*unstructured.Unstructured).Object).(tree)}
				live.(*unstructured.Unstructured).Object["spec"].(tree)["look"].(tree)["size"] = n
				for _, next := range []any{n, int64(1), int64(2)} {
					_, err = m.Apply(live, widget(next), "a", true)
					require.NoError(t, err)
					_, err = m.Update(live, widget(next), "b")
					require.NoError(t, err)
					require.NotNil(t, m.UpdateNoErrors(live, widget(next), "b"))
				}
			})
		}
		t.Run(fmt.Sprintf("%T, extracted", n), func(t *testing.T) {
			u := &unstructured.Unstructured{Object: tree{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": tree{"name": "d", "managedFields": []any{tree{
					"manager": "a", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
					"fieldsV1": tree{"f:spec": tree{"f:replicas": tree{}}},
				}}},
				"spec": tree{"replicas": n},
			}}
			var into struct {
				Spec struct {
					Replicas *int32 `json:"replicas"`
				} `json:"spec"`
			}
			typ := openapi.Builtin().TypeFor(u.GroupVersionKind())
			require.NoError(t, apimachinery.ExtractIntoOf(u, typ, "a", &into, ""))
			require.EqualValues(t, 1, *into.Spec.Replicas)
		})
	}
}
