package plans_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestOtherForms: an applier may have written a quantity in another form, or an atomic value without its defaults.
func TestOtherForms(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	m, err := fieldmanager.New(gvk, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	live := manifest(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, labels: {a: "1"}}, spec: {
		volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem}}],
		template: {spec: {tolerations: [{key: k, operator: Exists}], containers: [
			{name: c, image: i, resources: {limits: {cpu: "1"}}}]}}}}`)
	before := live.DeepCopy()
	template := fieldpath.NewPath("spec", "template", "spec")
	container := slices.Concat(template, fieldpath.NewPath("containers"),
		fieldpath.Path{fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: "c"})})
	cpu := slices.Concat(container, fieldpath.NewPath("resources", "limits", "cpu"))
	for why, row := range map[string]struct {
		path      fieldpath.Path
		operation metav1.ManagedFieldsOperationType
		want      bool
	}{
		"a quantity":       {cpu, "Apply", true},
		"of an updater":    {cpu, "Update", false},
		"a text":           {slices.Concat(container, fieldpath.NewPath("image")), "Apply", false},
		"a number in text": {fieldpath.NewPath("metadata", "labels", "a"), "Apply", false},
		"with a default":   {fieldpath.NewPath("spec", "volumeClaimTemplates"), "Apply", true},
		"without defaults": {slices.Concat(template, fieldpath.NewPath("tolerations")), "Apply", false},
		"a missing field":  {fieldpath.NewPath("spec", "replicas"), "Apply", false},
	} {
		found := conflicts.Conflicts{{
			Path: row.path, Owner: managedfields.Key{Manager: "a", Operation: row.operation}, APIVersion: "apps/v1",
		}}
		got := plans.OtherForms(t.Context(), m, live, found, plans.Options{
			Semantics: typed.Canonical(nil), Defaulter: func(obj runtime.Object) {
				claims, _, _ := unstructured.NestedSlice(obj.(*unstructured.Unstructured).Object, "spec", "volumeClaimTemplates")
				_ = unstructured.SetNestedField(claims[0].(map[string]any), "Filesystem", "spec", "volumeMode")
				_ = unstructured.SetNestedSlice(obj.(*unstructured.Unstructured).Object, claims, "spec", "volumeClaimTemplates")
			},
		})
		require.Equal(t, row.want, len(got) > 0, why)
		require.Equal(t, before, live, why)
	}

	// An item of a set has no other form, and a large map leaves tries for other fields.
	labels := map[string]any{}
	for i := range 40 {
		labels[fmt.Sprint("l", i)] = "x"
	}
	require.NoError(t, unstructured.SetNestedField(live.Object, labels, "spec", "selector", "matchLabels"))
	live.SetFinalizers([]string{"1"})
	finalizer := fieldpath.Path{
		fieldpath.FieldElement("metadata"), fieldpath.FieldElement("finalizers"), fieldpath.ValueElement("1"),
	}
	var found conflicts.Conflicts
	for _, path := range []fieldpath.Path{finalizer, fieldpath.NewPath("spec", "selector"), cpu} {
		found = append(found, conflicts.Conflict{
			Path: path, Owner: managedfields.Key{Manager: "a", Operation: "Apply"}, APIVersion: "apps/v1",
		})
	}
	got := plans.OtherForms(t.Context(), m, live, found, plans.Options{Semantics: typed.Canonical(nil)})
	require.Equal(t, []fieldpath.Path{cpu}, got)
}
