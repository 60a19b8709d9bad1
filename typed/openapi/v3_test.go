package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"

	"github.com/tenure-ssa/tenure/typed"
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

// TestZeroDefaults: Kubernetes 1.28 and older publish {} as the default of structs that are stored as scalars.
func TestZeroDefaults(t *testing.T) {
	property := func(model string) string {
		return `{"allOf": [{"$ref": "#/components/schemas/` + model + `"}], "default": {}}`
	}
	types, err := CompileV3(documentOf(`{
		"IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
		"Time": {"type": "string", "format": "date-time"},
		"Spec": {"type": "object", "properties": {"a": {"type": "string"}}},
		"JSON": {},
		"K": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}],
			"properties": {"port": ` + property("IntOrString") + `, "time": ` + property("Time") + `,
				"spec": ` + property("Spec") + `, "any": ` + property("JSON") + `}}}`))
	require.NoError(t, err)
	k := types.TypeFor(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"})
	require.Equal(t, map[string]any{"spec": map[string]any{}, "any": map[string]any{}}, k.Default(map[string]any{}))
}

func TestCompileV3Errors(t *testing.T) {
	rows := []struct{ name, why, document, want string }{
		{"no JSON", "", `{"openapi" 3}`, "not an OpenAPI v3 document: invalid character"},
		{"no YAML", "", "openapi: [", "not an OpenAPI v3 document: "},
		{"aliases", "they become too much (spec rule 12.9)", "a: &a " + strings.Repeat("x", 1<<20) +
			"\nb: [*a, *a, *a, *a, *a, *a]", "not an OpenAPI v3 document: line 1: aliases: expected at most"},
		{"null", "nothing at all is more likely a mistake than a document", `null`, "got null, want an object"},
		{"a list", "no Go type", `[]`, "not an OpenAPI v3 document: got array, want an object"},
		{"schemas", "the path", `{"components":{"schemas":[]}}`, "components.schemas: got array, want an object"},
		{"OpenAPI v2", "its models are elsewhere, so that the registry would be empty", `{"swagger": "2.0"}`,
			"got an OpenAPI v2 document (swagger 2.0), want OpenAPI v3"},
		{"null model", "upstream panics", string(documentOf(`{"M": null}`)), "M: no schema, want an object"},
		{"undecodable model", "the error names the model", string(documentOf(`{"M": {"properties": 1}}`)),
			"M: cannot decode: "},
		{"too deep", "nothing may exhaust the stack", strings.Repeat("[", 1_000_000),
			"not an OpenAPI v3 document: "},
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

// TestComplete: the document of a host with its own objects needs to describe only the host's own fields.
func TestComplete(t *testing.T) {
	const recipe = `
openapi: 3.0.0
components:
  schemas:
    Recipe:
      type: object
      x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Recipe}]
      properties:
        spec: {$ref: "#/components/schemas/RecipeSpec"}
    RecipeSpec:
      type: object
      properties: {servings: {type: integer}}
`
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Recipe"}
	types, err := CompileV3([]byte(recipe), Complete)
	require.NoError(t, err)
	object := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Recipe", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"servings": int64(2)},
	}
	require.NoError(t, types.TypeFor(gvk).Validate(object, typed.Rules{}))
	require.Same(t, ObjectMeta(), types.TypeFor(gvk).Map.Field("metadata").Type)
	require.Nil(t, types.TypeFor(gvk).Map.Field("spec").Type.Map.Field("metadata").Type, "it is no kind")

	plain, err := CompileV3([]byte(recipe))
	require.NoError(t, err)
	require.Error(t, plain.TypeFor(gvk).Validate(object, typed.Rules{}), "not without being asked")

	_, err = CompileV3([]byte(strings.Replace(recipe, "RecipeSpec:", "RecipeSpecs:", 1)), Complete)
	require.EqualError(t, err, `Recipe: properties.spec.$ref: no schema "RecipeSpec" in the document`)
	const servings = "{type: integer}"
	for _, row := range []struct{ why, old, wrong, want string }{
		{"a misspelled extension would make a list atomic", servings, "{type: array, x-kubernetes-listtype: set}",
			"RecipeSpec: properties.servings.x-kubernetes-listtype: unknown extension, want one of x-kubernetes-group-"},
		{"beside a reference, too", "spec: {", "spec: {x-kubernetes-map: atomic, ",
			"Recipe: properties.spec.x-kubernetes-map: unknown extension, want one of"},
		{"a default would be set as it is", servings, "{type: integer, default: x}",
			"RecipeSpec: properties.servings.default: expected number, got \"x\""},
		{"nothing would be of this kind", "[{group: example.com, version: v1, kind: Recipe}]",
			"{group: example.com, version: v1, kind: Recipe}",
			"Recipe: x-kubernetes-group-version-kind: want a list of objects with group, version and kind"},
	} {
		_, err = CompileV3([]byte(strings.Replace(recipe, row.old, row.wrong, 1)), Complete)
		require.ErrorContains(t, err, row.want, row.why)
	}
	_, err = CompileV3([]byte("{}"), Complete)
	require.EqualError(t, err, "components.schemas: no kind, want a schema with x-kubernetes-group-version-kind")
}

// FuzzCompileV3: nothing panics, Tenure accepts exactly the documents that upstream accepts, and the graphs are equal.
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
