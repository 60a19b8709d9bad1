package fieldmanager_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// loose is a Go struct with a field of type map[string]any.
type loose struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}

func (l *loose) DeepCopyObject() runtime.Object {
	return &loose{l.TypeMeta, *l.ObjectMeta.DeepCopy(), l.Spec}
}

// deducedTypes returns the deduced type for each kind.
type deducedTypes struct{}

func (deducedTypes) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

var looseKind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Loose"}

func newLoose(spec map[string]any) *loose {
	return &loose{TypeMeta: metav1.TypeMeta{APIVersion: "example.dev/v1", Kind: "Loose"}, Spec: spec}
}

// TestErrorsOfGoStructs: if several values of a Go struct can't be written as JSON, the error is always about the same
// one, and has its path as for a tree.
func TestErrorsOfGoStructs(t *testing.T) {
	m, err := fieldmanager.New(looseKind, deducedTypes{}, fieldmanager.Options{})
	require.NoError(t, err)
	good := newLoose(map[string]any{"x": "y"})
	bad := map[string]any{}
	for i := range 20 {
		bad[fmt.Sprintf("k%02d", i)] = map[string]any{"a": []any{"x", func() {}}}
	}
	want := fieldpath.Path{
		fieldpath.FieldElement("spec"), fieldpath.FieldElement("k00"), fieldpath.FieldElement("a"), fieldpath.IndexElement(1),
	}
	for range 20 {
		for name, write := range map[string]func() error{
			"apply": func() error {
				_, err := m.Apply(t.Context(), nil, newLoose(bad), fieldmanager.ApplyOptions{Manager: "a"})
				return err
			},
			"apply to it": func() error {
				_, err := m.Apply(t.Context(), newLoose(bad), good, fieldmanager.ApplyOptions{Manager: "a"})
				return err
			},
			"create": func() error {
				_, err := m.Update(t.Context(), nil, newLoose(bad), fieldmanager.UpdateOptions{Manager: "a"})
				return err
			},
			"update": func() error {
				_, err := m.Update(t.Context(), good, newLoose(bad), fieldmanager.UpdateOptions{Manager: "a"})
				return err
			},
		} {
			var located *typed.Error
			require.ErrorAs(t, write(), &located, name)
			require.Equal(t, want.String(), located.Path.String(), name)
		}
	}
}

// handed is a converter that records its arguments.
type handed struct{ objects []runtime.Object }

func (h *handed) Convert(ctx context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	h.objects = append(h.objects, obj)
	return fieldmanager.NoneConverter{}.Convert(ctx, obj, to)
}

// TestWhatAConverterIsHanded: a converter gets a live object of another version unchanged. To compare an entry of
// another version, it gets objects without managed fields, which are unstructured even for Go structs.
func TestWhatAConverterIsHanded(t *testing.T) {
	h := &handed{}
	m, err := fieldmanager.New(looseKind, deducedTypes{}, fieldmanager.Options{Converter: h})
	require.NoError(t, err)
	live := newLoose(map[string]any{"x": "y"})
	live.UID = "u"
	live.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "b", Operation: "Update", APIVersion: "example.dev/v2", FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.New(`{"f:spec":{"f:x":{}}}`),
	}}
	_, err = m.Apply(t.Context(), live, newLoose(map[string]any{"x": "z"}), fieldmanager.ApplyOptions{Manager: "a", Force: true})
	require.NoError(t, err)
	require.NotEmpty(t, h.objects)
	for _, obj := range h.objects {
		u, ok := obj.(*unstructured.Unstructured)
		require.True(t, ok, "%T", obj)
		require.NotContains(t, u.Object["metadata"], "managedFields")
	}

	h.objects = nil
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.dev/v2", "kind": "Loose", "metadata": map[string]any{"name": "x"},
	}}
	updated := other.DeepCopy()
	updated.Object["spec"] = map[string]any{"x": "z"}
	_, err = m.Update(t.Context(), other, updated, fieldmanager.UpdateOptions{Manager: "a"})
	require.NoError(t, err)
	require.NotEmpty(t, h.objects)
	require.Same(t, other, h.objects[0])
}
