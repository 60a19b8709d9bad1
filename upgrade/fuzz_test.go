package upgrade_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

// FuzzAnyInput gives any JSON to everything: it is an error or a result, never a
// panic, and never changes what it was given.
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
	document, _ := openapi.BuiltinDocument(deploymentKind.GroupVersion())
	meta, err := upgrade.PatchMeta(document, deploymentKind)
	require.NoError(f, err)
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
			{Manager: "kubectl", Everything: true, KeepLastApplied: true, Also: fieldpath.NewSet(fieldpath.Fields("spec"))},
		} {
			r, err := upgrade.ToServerSide(objects[0], o)
			if err == nil {
				_, _ = upgrade.ToClientSide(r.Object, upgrade.ClientSideOptions{Types: builtin, Manager: o.Manager})
			}
		}
		_, _ = upgrade.SetLastApplied(objects[0], objects[1], true)
		_, _ = upgrade.ViewLastApplied(objects[0], upgrade.YAML)
		_, _ = upgrade.ClientSideApply(objects[0], objects[1], upgrade.ApplyOptions{})
		_, _ = upgrade.ClientSideApply(objects[0], objects[1], upgrade.ApplyOptions{Meta: meta, NoOverwrite: true})
		for i := range objects {
			require.Equal(t, before[i], objects[i].Object, "inputs are never changed")
		}
	})
}
