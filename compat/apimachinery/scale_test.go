package apimachinery_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// scale is the Go struct of autoscaling/v1 with the fields that the tests write.
type scale struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas int32 `json:"replicas,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Replicas int32 `json:"replicas"`
	} `json:"status,omitempty"`
}

func (s *scale) DeepCopyObject() runtime.Object {
	out := *s
	out.ObjectMeta = *s.ObjectMeta.DeepCopy()
	return &out
}

// scaleHost handles the scale subresource of custom resources like apiextensions-apiserver: objects are Go structs,
// which its converter can convert, but the creater makes an unstructured object, which the converter rejects.
type scaleHost struct{ custom }

func (scaleHost) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if _, ok := in.(*scale); ok {
		return in, nil
	}
	return nil, fmt.Errorf(
		"request to convert CR from an invalid group/version: %s",
		in.GetObjectKind().GroupVersionKind().GroupVersion(),
	)
}

// TestScaleOfCustomResources: updates of /scale are tracked as in upstream. An apply, which fails in upstream, succeeds
// (doc/differences.md, 28).
func TestScaleOfCustomResources(t *testing.T) {
	h := &scaleHost{}
	types := apimachinery.FromTypes(openapi.Builtin())
	upstream := must(
		managedfields.NewDefaultCRDFieldManager(types, h, h, h, scaleKind, scaleKind.GroupVersion(), "scale", nil),
	)
	tenure := must(
		apimachinery.NewDefaultCRDFieldManager(types, h, h, h, scaleKind, scaleKind.GroupVersion(), "scale", nil),
	)
	object := func(replicas int32) *scale {
		s := &scale{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "uid"}}
		s.SetGroupVersionKind(scaleKind)
		s.Spec.Replicas, s.Status.Replicas = replicas, 1
		return s
	}
	entries := []metav1.ManagedFieldsEntry{{
		Manager: "a", Operation: "Apply", APIVersion: "autoscaling/v1", FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.New(`{"f:spec":{"f:replicas":{}}}`),
	}}
	for _, row := range []struct {
		name, why string
		live      []metav1.ManagedFieldsEntry
		replicas  int32
	}{
		{"changed", "the updater takes the field", entries, 3},
		{"unchanged", "the applier keeps it", entries, 2},
		{"untracked", "nobody owns anything", nil, 3},
	} {
		t.Run("update/"+row.name, func(t *testing.T) {
			live := object(2)
			live.ManagedFields = row.live
			up, own := object(row.replicas), object(row.replicas)
			_, err := upstream.Update(live.DeepCopyObject(), up, "editor")
			require.NoError(t, err)
			_, err = tenure.Update(live, own, "editor")
			require.NoError(t, err)
			for _, s := range []*scale{up, own} {
				for i := range s.ManagedFields {
					s.ManagedFields[i].Time = nil
				}
			}
			require.Equal(t, oracle.JSON(up), oracle.JSON(own), row.why)
		})
	}

	intent := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "w"}, "spec": tree{"replicas": int64(5)}}}
	intent.SetGroupVersionKind(scaleKind)
	_, err := upstream.Apply(object(2), intent.DeepCopy(), "a", true)
	require.Error(t, err, "upstream")
	for _, live := range []*scale{object(0), object(2)} {
		out, err := tenure.Apply(live, intent, "a", true)
		require.NoError(t, err)
		require.EqualValues(t, 5, out.(*scale).Spec.Replicas)
		require.Len(t, out.(*scale).ManagedFields, 2, "the status is before-first-apply's")
		_, err = tenure.Apply(live, intent, "b", false)
		require.Equal(t, live.Spec.Replicas != 0, err != nil, "a zero is not owned: %v", err)
	}
}

// TestScaleHandlerOrder: FieldsV1 is sorted by elements, as in any other entry, not by their texts (doc/differences.md,
// 37).
func TestScaleHandlerOrder(t *testing.T) {
	const fields = `{"f:spec":{"f:hosts":{"v:9":{},"v:10":{}}}}`
	parent := []metav1.ManagedFieldsEntry{{Manager: "a", Operation: "Update", APIVersion: "example.dev/v1",
		FieldsType: "FieldsV1", FieldsV1: fieldsv1.New(fields)}}
	mappings := managedfields.ResourcePathMappings{"example.dev/v1": smd.MakePathOrDie("spec", "replicas")}
	up, err := managedfields.NewScaleHandler(parent, gv("v1"), mappings).ToParent(nil)
	require.NoError(t, err)
	require.Equal(t, `{"f:spec":{"f:hosts":{"v:10":{},"v:9":{}}}}`, string(fieldsv1.Bytes(up[0].FieldsV1)))
	own, err := apimachinery.NewScaleHandler(parent, gv("v1"), mappings).ToParent(nil)
	require.NoError(t, err)
	require.Equal(t, fields, string(fieldsv1.Bytes(own[0].FieldsV1)))
}
