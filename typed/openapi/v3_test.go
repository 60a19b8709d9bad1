package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
)

func documentOf(schemas string) []byte {
	return []byte(`{"openapi": "3.0.0", "components": {"schemas": ` + schemas + `}}`)
}

func TestCompileV3(t *testing.T) {
	k := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	const ext = `"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]`
	one := documentOf(
		`{"K": {"type": "array", "items": {"$ref": "#/components/schemas/E"}, ` + ext + `}, "E": {"type": "string"}}`)
	two := documentOf(
		`{"K": {"type": "array", "items": {"$ref": "#/components/schemas/E"}, ` + ext + `}, "E": {"type": "integer"}}`)
	first, err := CompileV3(one)
	require.NoError(t, err)
	second, err := CompileV3(two)
	require.NoError(t, err)
	require.Equal(t, number, Union(first, second).TypeFor(k).List.Elem(), "a document refers to its own models")
	require.Equal(t, text, Union(second, first).TypeFor(k).List.Elem())
}

func TestCompileV3Errors(t *testing.T) {
	rows := []struct{ name, why, document, want string }{
		{"no JSON", "YAML is not taken", `openapi: 3.0.0`, "not an OpenAPI v3 document: invalid character"},
		{"null", "nothing at all is more likely a mistake than a document", `null`, "got null, want an object"},
		{"a list", "the decoder tells what it met", `[]`, "cannot unmarshal array"},
		{"OpenAPI v2", "its models are elsewhere, so that the registry would be empty", `{"swagger": "2.0"}`,
			"got an OpenAPI v2 document (swagger 2.0), want OpenAPI v3"},
		{"null model", "upstream panics", string(documentOf(`{"M": null}`)), "M: no schema, want an object"},
		{"undecodable model", "the error names the model", string(documentOf(`{"M": {"properties": 1}}`)),
			"M: cannot decode: "},
		{"too deep", "nothing may exhaust the stack", strings.Repeat("[", 1_000_000),
			"not an OpenAPI v3 document: invalid character '[' exceeded max depth"},
		{"deep schemas", "nothing may exhaust the stack",
			string(documentOf(`{"M": {"items": ` + strings.Repeat(`{"items": `, 9000) + `{}` + strings.Repeat(`}`, 9001) + `}`)),
			"nested too deep, want at most 1000 levels"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := CompileV3([]byte(row.document))
			require.ErrorContains(t, err, row.want, row.why)
		})
	}
	_, err := CompileV3(
		documentOf(`{"M": {"items": ` + strings.Repeat(`{"items": `, 995) + `{}` + strings.Repeat(`}`, 995) + `}}`))
	require.NoError(t, err, "998 levels")
}

// FuzzCompileV3: nothing panics, upstream refuses what is refused and accepts
// what is accepted, and the graphs are equal.
func FuzzCompileV3(f *testing.F) {
	for _, row := range schemasOf(f, false) {
		f.Add(documentOf(string(row.Models)))
	}
	f.Add(documentOf(`{"M": {"type": "array", "items": [{}, {}]}, "N": {"type": "x"}, "O": null}`))
	f.Add([]byte(`{"swagger": "2.0"}`))
	f.Add([]byte(strings.Repeat(`{"components":`, 2000)))
	f.Fuzz(func(t *testing.T, document []byte) {
		_, err := CompileV3(document)
		models, decodeErr := decodeV3(document)
		if decodeErr != nil {
			require.EqualError(t, err, decodeErr.Error())
			return
		}
		for _, m := range models {
			if m == nil {
				require.Error(t, err)
				return
			}
		}
		if _, theirs := schemaconv.ToSchemaFromOpenAPI(models, false); theirs != nil {
			require.Error(t, err, "upstream: %v", theirs)
			return
		}
		require.NoError(t, err)
		requireSame(t, models, false)
	})
}
