package upgrade_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
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
			r, err := upgrade.ToServerSide(context.Background(), objects[0], o)
			if err == nil {
				_, _ = upgrade.ToClientSide(context.Background(), r.Object,
					upgrade.ClientSideOptions{Types: builtin, Manager: o.Manager})
			}
		}
		for i := range objects {
			require.Equal(t, before[i], objects[i].Object, "inputs are never changed")
		}
	})
}
