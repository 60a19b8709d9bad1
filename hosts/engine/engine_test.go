package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestModes(t *testing.T) {
	for text, want := range map[string]Mode{"": Tenure, "upstream": Upstream, "tenure": Tenure, "shadow": Shadow} {
		got, err := ModeFrom(environment(map[string]string{ModeVariable: text}))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := New(environment(map[string]string{ModeVariable: "Shadow"}))
	require.EqualError(t, err, `TENURE_FIELD_MANAGEMENT is "Shadow": expected upstream, tenure or shadow`)
	e, err := New(environment(map[string]string{ModeVariable: "upstream"}))
	require.NoError(t, err)
	require.Nil(t, e, "nothing is registered")
	e, err = New(environment(nil))
	require.NoError(t, err)
	require.True(t, e.Answers())
	_, err = New(environment(map[string]string{ModeVariable: "shadow", "TENURE_SHADOW_RATE": "2"}))
	require.EqualError(t, err, `TENURE_SHADOW_RATE is "2": expected a number from 0 to 1`)
	e, err = New(environment(map[string]string{ModeVariable: "shadow", "TENURE_SHADOW_TRACES": t.TempDir()}))
	require.NoError(t, err)
	require.False(t, e.Answers(), "upstream answers")
}

// TestTypes: a server in the mode Tenure does not create upstream's types.
func TestTypes(t *testing.T) {
	e, err := New(environment(nil))
	require.NoError(t, err)
	kind := schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Thing"}
	thing := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-group-version-kind": []any{
			map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}}}}}
	converter, err := e.NewTypeConverter(map[string]*spec.Schema{"thing": &thing}, false)
	require.NoError(t, err)
	types, ok := converter.(fieldmanager.Types)
	require.True(t, ok)
	found, err := types.Type(kind)
	require.NoError(t, err)
	require.NotNil(t, found.Map)
	thing.Properties = map[string]spec.Schema{"a": {VendorExtensible: spec.VendorExtensible{
		Extensions: spec.Extensions{"x-kubernetes-map-type": "none"}}}}
	_, err = e.NewTypeConverter(map[string]*spec.Schema{"thing": &thing}, false)
	require.Error(t, err, "then upstream has the say")
}
