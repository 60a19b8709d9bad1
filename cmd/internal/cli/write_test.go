package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

func testStore(t *testing.T) *place.Store {
	t.Helper()
	p, err := openStore(testEnv(), filepath.Join(t.TempDir(), "none"), "", process.EmptyStore)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// Writes do not change their inputs.
func TestInputsStay(t *testing.T) {
	p := testStore(t)
	for _, apply := range []bool{true, false} {
		w := testWriter(p, "m")
		w.Apply = apply
		given := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "1"},
		}
		before := runtime.DeepCopyJSON(given)
		_, err := w.Write(t.Context(), given)
		require.NoError(t, err)
		require.Equal(t, before, given)
	}
}

// A store refuses objects that a server would not store: defaults would expand 2 KB of manifest to 60 MB.
func TestSizeOfObjects(t *testing.T) {
	const kib = 1 << 10
	definition := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "oxen.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Ox", "plural": "oxen"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"parts": map[string]any{
						"type": "array", "items": map[string]any{
							"type": "object", "properties": map[string]any{"text": map[string]any{
								"type": "string", "default": strings.Repeat("x", 100*kib),
							}},
						},
					}},
				}}}},
		},
	}
	items := make([]any, 600)
	for i := range items {
		items[i] = map[string]any{}
	}
	w := testWriter(testStore(t), "m")
	_, err := w.Write(t.Context(), definition)
	require.NoError(t, err)
	for _, dryRun := range []bool{true, false} {
		w.Options.DryRun = dryRun
		_, err := w.Write(t.Context(), map[string]any{
			"apiVersion": "example.com/v1", "kind": "Ox", "metadata": map[string]any{"name": "o"}, "parts": items,
		})
		require.ErrorContains(t, err, "parts[15].text: the defaults of the object up to here", "dry run %v", dryRun)
	}
}
