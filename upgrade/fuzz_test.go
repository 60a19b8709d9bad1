package upgrade_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// updated has an Update entry, and nothing that shows what was applied.
const updated = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {a: "1", b: "2"}
  managedFields:
  - manager: updater
    operation: Update
    apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1: {"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}}}
data: {a: "1", b: "2"}
`

// FuzzAnyInput passes any JSON as each argument. The result is an error or a valid result, never a panic, and arguments
// never change. Fields that are not known to have been applied are never removed.
func FuzzAnyInput(f *testing.F) {
	seed := func(live, intent string) {
		b, err := manifest(live).MarshalJSON()
		require.NoError(f, err)
		i, err := manifest(intent).MarshalJSON()
		require.NoError(f, err)
		f.Add(b, i)
	}
	seed(restarted, web)
	seed(restarted, webLess)
	seed(widget, widget)
	seed(settings, settings)
	seed(updated, settings)
	seed(updated, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: "1"}}, data: {a: "1"}}`)
	f.Fuzz(func(t *testing.T, live, intent []byte) {
		var objects [2]*unstructured.Unstructured
		for i, data := range [][]byte{live, intent} {
			tree := map[string]any{}
			if utiljson.Unmarshal(data, &tree) != nil {
				return
			}
			objects[i] = &unstructured.Unstructured{Object: tree}
		}
		var before [2]map[string]any
		for i := range objects {
			before[i] = runtime.DeepCopyJSON(objects[i].Object)
		}
		for _, o := range []upgrade.ServerSideOptions{
			{Manager: "flux", Types: builtin}, {Manager: "flux", Types: free{}, Intent: objects[1], Release: true},
			{Manager: "flux", Types: builtin, Intent: objects[1], From: []string{"updater"}},
			{Manager: "kubectl", Everything: true, KeepLastApplied: true, Also: fieldpath.NewSet(fieldpath.NewPath("spec"))},
		} {
			r, err := upgrade.ToServerSide(context.Background(), objects[0], o)
			if err == nil {
				requireNothingRemoved(t, objects[0], o, r)
				_, _ = upgrade.ToClientSide(context.Background(), r.Object,
					upgrade.ClientSideOptions{Types: builtin, Manager: o.Manager})
			}
		}
		for i := range objects {
			require.Equal(t, before[i], objects[i].Object, "inputs are never changed")
		}
	})
}

// requireNothingRemoved requires that the next apply after a move removes nothing from an object that has no annotation
// and no entry of the applier.
func requireNothingRemoved(t *testing.T, live *unstructured.Unstructured, o upgrade.ServerSideOptions, r upgrade.Result) {
	applied, err := upgrade.Owners(live, metav1.ManagedFieldsOperationApply, nil)
	isOwn := func(e managedfields.Entry) bool { return e.Manager == o.Manager }
	_, isAnnotated := live.GetAnnotations()[fieldmanager.LastAppliedAnnotation]
	if err == nil && !isAnnotated && !slices.ContainsFunc(applied, isOwn) && !o.Everything {
		require.Empty(t, r.Preview.Removed.String())
	}
}
