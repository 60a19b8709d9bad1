package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/strategy"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestStrategies compares package strategy with the registries of k8s.io/kubernetes, for each built-in resource and
// subresource that can be updated: the reset fields of each version, and the empty object that a create starts from.
// TestOracleDefaults compares the defaults.
func TestStrategies(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	total := 0
	for _, g := range apiserver.Resources(h.Server).Groups() {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				for _, s := range append([]resources.Subresource{{}}, r.Subresources...) {
					e, err := r.Endpoint(s.Name)
					require.NoError(t, err, r.GVR())
					if _, writes := e.Storage.(rest.Updater); writes {
						total++
						t.Run(r.GVR().String()+"/"+s.Name, func(t *testing.T) { compareStrategy(t, r, s.Name, e.Storage) })
					}
				}
			}
		}
	}
	require.Greater(t, total, 80)
}

func compareStrategy(t *testing.T, r *resources.Resource, subresource string, storage any) {
	types := openapi.Builtin()
	ours := strategy.Of(types, r.GVK(), subresource)
	options := ours.FieldManager()
	require.Equal(t, subresource, options.Subresource)

	want := map[string]fieldpath.Filter{}
	if theirs, ok := storage.(rest.ResetFieldsStrategy); ok {
		known := map[string]bool{} // upstream's strategies also list versions that are no longer served
		for _, version := range types.Versions(r.GroupKind()) {
			gvk := r.GroupKind().WithVersion(version)
			known[gvk.GroupVersion().String()] = true
		}
		for version, paths := range theirs.GetResetFields() {
			set, err := smdv6.FromSet(paths)
			require.NoError(t, err)
			if known[string(version)] && !set.IsEmpty() {
				want[string(version)] = fieldpath.Excluding{Set: set}
			}
		}
	}
	if len(want) == 0 {
		want = nil
	}
	require.Equal(t, want, options.ResetFields)

	_, hasStatus := r.Subresource("status")
	require.Equal(t, hasStatus, types.HasStatus(r.GVK()))
	if options.Empty != nil { // k8s.io/api lacks the kinds of apiextensions
		zero, err := builtin.SchemeOf(r.Group).New(r.GVK())
		require.NoError(t, err)
		zero.GetObjectKind().SetGroupVersionKind(r.GVK())
		require.Equal(t, zero, options.Empty)
	}
	require.NotNil(t, ours.Plan("m").Semantics, "objects are stored as Go structs")
	_, err := fieldmanager.New(r.GVK(), types, options)
	require.NoError(t, err)
}
