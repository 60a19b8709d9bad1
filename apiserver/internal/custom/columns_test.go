package custom

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestColumnsAgainstUpstream shows one object through columns of all types, and
// compares with what upstream shows.
func TestColumnsAgainstUpstream(t *testing.T) {
	object := map[string]any{
		"apiVersion": "example.dev/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "creationTimestamp": "2020-01-01T00:00:00Z"},
		"spec": map[string]any{
			"text": "red", "n": int64(3), "f": 1.5, "yes": true, "nothing": nil, "empty": "",
			"when": "2021-01-01T00:00:00Z", "later": "soon", "list": []any{map[string]any{"name": "a"},
				map[string]any{"name": "b"}},
			"map": map[string]any{"k": "v"},
		},
	}
	paths := []string{
		".metadata.creationTimestamp", ".spec.text", ".spec.n", ".spec.f", ".spec.yes", ".spec.nothing", ".spec.empty",
		".spec.when",
		".spec.later", ".spec.list[*].name", ".spec.list[?(@.name=='b')].name", ".spec.list[5].name", ".spec.map",
		".spec.absent.more", ".spec.list",
	}
	var asked []apiextensionsv1.CustomResourceColumnDefinition
	for _, path := range paths {
		for _, typ := range []string{"string", "integer", "number", "boolean", "date"} {
			asked = append(asked, apiextensionsv1.CustomResourceColumnDefinition{Name: path + " as " + typ, Type: typ,
				JSONPath: path, Priority: 1})
		}
	}
	asked[0].Description, asked[0].Format = "described", "byte"
	u := &unstructured.Unstructured{Object: object}
	upstream, err := tableconvertor.New(asked)
	require.NoError(t, err)
	want, err := upstream.ConvertToTable(context.Background(), u, nil)
	require.NoError(t, err)

	c, err := columnsOf(&apiextensionsv1.CustomResourceDefinitionVersion{AdditionalPrinterColumns: asked})
	require.NoError(t, err)
	require.Equal(t, want.ColumnDefinitions, c.Definitions())
	cells, err := c.Cells(u, resources.SinceAt(time.Now()))
	require.NoError(t, err)
	require.Equal(t, jsonOf(t, want.Rows[0].Cells), jsonOf(t, cells))
}

func jsonOf(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// TestColumnsByDefault shows the columns of a definition that asks for none.
func TestColumnsByDefault(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c, err := columnsOf(&apiextensionsv1.CustomResourceDefinitionVersion{})
	require.NoError(t, err)
	require.Len(t, c.Definitions(), 2)
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w",
		"creationTimestamp": "2026-01-01T11:00:00Z"}}}
	cells, err := c.Cells(u, resources.SinceAt(now))
	require.NoError(t, err)
	require.Equal(t, []any{"w", "60m"}, cells)
}
