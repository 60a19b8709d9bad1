package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A store takes no object that a server does not store.
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
	annotated := configMap("c", nil)
	annotated["metadata"].(map[string]any)["annotations"] = map[string]any{"a": strings.Repeat("x", 200*kib)}
	w := testWriter(testStore(t), "m")
	_, err := w.Write(t.Context(), definition)
	require.NoError(t, err)
	for _, row := range []struct {
		name string
		tree map[string]any
		says string // empty: it is stored
		why  string
	}{
		{"defaults of 60 MB", map[string]any{"apiVersion": "example.com/v1", "kind": "Ox",
			"metadata": map[string]any{"name": "o"}, "parts": items},
			"parts[15].text: the defaults of the object up to here", "2 KB of a manifest become 60 MB"},
		{"200 KiB", annotated, "", "below the limit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, dryRun := range []bool{true, false} {
				w := *w
				w.Options.DryRun = dryRun
				_, err := w.Write(t.Context(), row.tree)
				if row.says == "" {
					require.NoError(t, err, row.why)
				} else {
					require.ErrorContains(t, err, row.says, fmt.Sprint(row.why, ", dry run ", dryRun))
				}
			}
		})
	}
}
