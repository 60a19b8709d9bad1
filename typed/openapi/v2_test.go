package openapi

import (
	"encoding/json"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/util/proto"

	"github.com/tenure-ssa/tenure/typed"
)

func definitionsOf(schemas string) []byte {
	return []byte(
		`{"swagger": "2.0", "info": {"title": "t", "version": "v"}, "paths": {}, "definitions": ` + schemas + `}`)
}

// fromYAML returns a value as JSON decodes it; upstream decodes defaults as YAML.
func fromYAML(v any) any {
	switch t := v.(type) {
	case []any:
		for i := range t {
			t[i] = fromYAML(t[i])
		}
	case map[any]any:
		out := map[string]any{}
		for k, item := range t {
			out[fmt.Sprint(k)] = fromYAML(item)
		}
		return out
	}
	return v
}

// upstreamV2 returns what upstream makes of an OpenAPI v2 document.
func upstreamV2(document []byte) (proto.Models, error) {
	parsed, err := openapiv2.ParseDocument(document)
	if err != nil {
		return nil, err
	}
	return proto.NewOpenAPIData(parsed)
}

func requireSameV2(t testing.TB, document []byte, preserve bool) {
	t.Helper()
	upstream, err := upstreamV2(document)
	require.NoError(t, err, "upstream refuses the document")
	theirs, err := schemaconv.ToSchemaWithPreserveUnknownFields(upstream, preserve)
	require.NoError(t, err, "upstream refuses the definitions")
	models, err := decodeV2(document)
	require.NoError(t, err)
	c := v2Compiler{newCompiler(models, nil)}
	c.run(preserve)
	requireSameGraph(t, theirs, c.compiler)

	parser, err := managedfields.NewGVKParser(upstream, preserve)
	require.NoError(t, err)
	types := c.kinds()
	require.Empty(t, c.errs)
	for _, name := range c.order {
		for _, gvk := range declaredKinds(models[name].Extensions) {
			require.NotNil(t, parser.Type(gvk), "%s", gvk)
			require.NotNil(t, types[gvk], "%s", gvk)
		}
	}
}

// toV2 rewrites the schemas of an OpenAPI v3 document as a server does that
// publishes them at /openapi/v2.
func toV2(t testing.TB, document []byte) []byte {
	t.Helper()
	var parsed struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(document, &parsed))
	for name, model := range parsed.Components.Schemas {
		schemaToV2(model)
		m := model.(map[string]any)
		switch {
		case name == quantityModel:
			m["type"] = "string"
		case strings.HasSuffix(name, ".IntOrString"):
			m["type"], m["format"] = "string", "int-or-string"
		}
	}
	out, err := json.Marshal(parsed.Components.Schemas)
	require.NoError(t, err)
	return definitionsOf(string(out))
}

func schemaToV2(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if all, ok := m["allOf"].([]any); ok && len(all) == 1 {
		m["$ref"] = all[0].(map[string]any)["$ref"]
	}
	for _, keyword := range []string{"allOf", "oneOf", "anyOf", "not", "nullable"} {
		delete(m, keyword)
	}
	if ref, ok := m["$ref"].(string); ok {
		m["$ref"] = strings.Replace(ref, "#/components/schemas/", definitions, 1)
	}
	schemaToV2(m["items"])
	schemaToV2(m["additionalProperties"])
	properties, _ := m["properties"].(map[string]any)
	for _, property := range properties {
		schemaToV2(property)
	}
}

func TestEveryBuiltinModelInV2IsAsUpstreamHasIt(t *testing.T) {
	for name, document := range embeddedDocuments(t) {
		t.Run(name, func(t *testing.T) {
			v2 := toV2(t, document)
			requireSameV2(t, v2, false)
			requireSameV2(t, v2, true)
			r, err := CompileV2(v2)
			require.NoError(t, err)
			require.NotEmpty(t, r.Kinds())
		})
	}
}

// TestRealV2Document compares over the document of a real server, which upstream
// keeps for its own tests.
func TestRealV2Document(t *testing.T) {
	dir, err := build.Import("k8s.io/apimachinery/pkg/util/managedfields", ".", build.FindOnly)
	require.NoError(t, err)
	document, err := os.ReadFile(filepath.Join(dir.Dir, "internal", "testdata", "swagger.json"))
	require.NoError(t, err)
	requireSameV2(t, document, false)
	r, err := CompileV2(document)
	require.NoError(t, err)
	pod := r.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	containers := pod.Map.Fields["spec"].Type.Map.Fields["containers"].Type.List
	require.Equal(t, []string{"name"}, containers.Keys)
}

var topologiesV2 = []struct{ name, why, definitions string }{
	{"no type", "anything", `{"M": {}}`},
	{"no type, properties", "servers of old wrote structs so", `{"M": {"properties": {"a": {"type": "string"}}}}`},
	{"no properties at all", "a struct without fields, which refuses all",
		`{"M": {"properties": {}}, "N": {"type": "object", "properties": {}}}`},
	{"object", "a map of anything", `{"M": {"type": "object"}}`},
	{"properties and additionalProperties", "the latter counts for nothing",
		`{"M": {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}}`},
	{
		"additionalProperties",
		"a schema, true, false",
		`{"M": {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}}, "N": {"type": "object", "additionalProperties": true}, "O": {"type": "object", "additionalProperties": false}}`,
	},
	{"map without a type", "additionalProperties alone make no map",
		`{"M": {"additionalProperties": {"type": "string"}}}`},
	{
		"preserve in a struct",
		"inherited by what is inline below, not by what is referred to",
		`{"M": {"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"properties": {"b": {"type": "string"}}}, "l": {"type": "array", "items": {"properties": {"c": {}}}}, "m": {"type": "object", "additionalProperties": {"properties": {"d": {}}}}, "r": {"$ref": "#/definitions/N"}}}, "N": {"properties": {"e": {}}}}`,
	},
	{
		"preserve in a map",
		"only a struct can say so",
		`{"M": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "additionalProperties": {"properties": {"a": {}}}}, "N": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"properties": {"a": {}}}}}`,
	},
	{"preserve and no properties", "a map that is untyped",
		`{"M": {"properties": {}, "x-kubernetes-preserve-unknown-fields": true}}`},
	{
		"raw extension",
		"its model does not count",
		`{"M": {"properties": {"a": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.runtime.RawExtension", "x-kubernetes-map-type": "granular"}}}, "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"}}`,
	},
	{
		"quantity",
		"a number as well as a string; an object stays one",
		`{"M": {"properties": {"a": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}}}, "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"}}`,
	},
	{"quantity of another shape", "only a scalar is special",
		`{"io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "array", "items": {"type": "string"}}}`},
	{
		"overrides",
		"a map type beside a reference",
		`{"M": {"properties": {"a": {"$ref": "#/definitions/N", "x-kubernetes-map-type": "atomic"}, "b": {"$ref": "#/definitions/N", "x-kubernetes-map-type": "granular"}, "c": {"$ref": "#/definitions/N"}}}, "N": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {}}}}`,
	},
	{
		"lists",
		"every list type",
		`{"M": {"properties": {"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "b": {"type": "array", "items": {"$ref": "#/definitions/I"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, "c": {"type": "array", "items": {"$ref": "#/definitions/I"}, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k"}, "d": {"type": "array", "items": {}}}}, "I": {"properties": {"k": {"type": "string", "default": "x"}}}}`,
	},
	{
		"defaults",
		"of every kind",
		`{"M": {"properties": {"a": {"type": "integer", "default": 3}, "b": {"type": "number", "default": 1.5}, "c": {"default": {"d": [1, "x", null]}}, "e": {"type": "string", "default": "x: y"}}}}`,
	},
	{
		"recursion",
		"a cycle",
		`{"M": {"properties": {"m": {"$ref": "#/definitions/M"}, "l": {"type": "array", "items": {"$ref": "#/definitions/M"}}}}}`,
	},
	{
		"an alias",
		"resolves to nothing",
		`{"M": {"$ref": "#/definitions/N"}, "N": {"type": "string"}, "O": {"properties": {"a": {"$ref": "#/definitions/M"}}}}`,
	},
	{
		"formats",
		"byte is a string, others are any scalar",
		`{"M": {"properties": {"a": {"type": "string", "format": "byte"}, "b": {"type": "string", "format": "int-or-string"}, "c": {"type": "integer", "format": "int64"}, "d": {"type": "boolean"}}}}`,
	},
	{
		"kinds",
		"one without a kind is no kind",
		`{"M": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "M"}, {"group": "", "version": "v1", "kind": ""}, {"group": "g", "version": "v1", "kind": "O"}]}}`,
	},
}

func TestV2TopologiesAreAsUpstreamHasThem(t *testing.T) {
	for _, row := range topologiesV2 {
		t.Run(row.name, func(t *testing.T) {
			requireSameV2(t, definitionsOf(row.definitions), false)
			requireSameV2(t, definitionsOf(row.definitions), true)
		})
	}
}

// TestWordsOfYAML: upstream decodes defaults and extensions as YAML 1.1, where
// some words are booleans: a kind or a key called N is lost, a default of "on" is
// true. What the document says is JSON.
func TestWordsOfYAML(t *testing.T) {
	document := definitionsOf(
		`{"M": {"properties": {"e": {"type": "string", "default": "on"}}, "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "N"}]}}`,
	)
	k := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "N"}
	r, err := CompileV2(document)
	require.NoError(t, err)
	require.Equal(t, "on", r.TypeFor(k).Map.Fields["e"].Default)

	upstream, err := upstreamV2(document)
	require.NoError(t, err)
	require.Equal(t, true, upstream.LookupModel("M").(*proto.Kind).Fields["e"].GetDefault())
	parser, err := managedfields.NewGVKParser(upstream, false)
	require.NoError(t, err)
	require.Nil(t, parser.Type(k))
}

// yamlScalars are strings that upstream may take for something else.
var yamlScalars = regexp.MustCompile(`(?i)"(y|n|yes|no|on|off|true|false|null|~|[-+.]?[0-9][^"]*|[-+.][^"]*|<<|=|)"`)

func TestCompileV2(t *testing.T) {
	r, err := CompileV2(
		definitionsOf(`{"M": {"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]}}`))
	require.NoError(t, err)
	k := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	require.Equal(t, []schema.GroupVersionKind{k}, r.Kinds())
	require.Equal(t, typed.Deduced(), r.TypeFor(k))
}

func TestCompileV2Errors(t *testing.T) {
	rows := []struct{ name, why, document, want string }{
		{"no JSON", "YAML is not taken", `swagger: "2.0"`, "not an OpenAPI v2 document: invalid character"},
		{"null", "more likely a mistake than a document", `null`, "got null, want an object"},
		{"OpenAPI v3", "its models are elsewhere", `{"openapi": "3.0.0"}`,
			"got an OpenAPI v3 document (openapi 3.0.0), want OpenAPI v2"},
		{"null definition", "there is nothing to compile", string(definitionsOf(`{"M": null}`)),
			"M: no schema, want an object"},
		{"unknown reference", "the one document has all there is",
			string(definitionsOf(`{"M": {"properties": {"a": {"$ref": "#/definitions/N"}}}}`)),
			`M: properties.a.$ref: no definition is called "N"`},
		{"reference elsewhere", "nothing is fetched",
			string(definitionsOf(`{"M": {"type": "array", "items": {"$ref": "#/parameters/N"}}}`)),
			`M: items.$ref: got "#/parameters/N", want one that starts with #/definitions/`},
		{"type beside a reference", "upstream refuses it",
			string(definitionsOf(`{"M": {"$ref": "#/definitions/M", "type": "object"}}`)),
			"M: $ref: used beside a type, want one or the other"},
		{"properties beside a reference", "upstream refuses it",
			string(definitionsOf(`{"M": {"$ref": "#/definitions/M", "properties": {"a": {}}}}`)),
			"M: $ref: used beside properties, want one or the other"},
		{"two types", "upstream refuses it", string(definitionsOf(`{"M": {"type": ["string", "null"]}}`)),
			"M: type: got 2 types, want one"},
		{"null type", "upstream refuses it", string(definitionsOf(`{"M": {"type": "null"}}`)),
			`M: type: unrecognized type "null"`},
		{"no items", "upstream refuses it", string(definitionsOf(`{"M": {"type": "array"}}`)),
			"M: items: missing, want the schema"},
		{"list type", "located like all",
			string(definitionsOf(
				`{"M": {"properties": {"a": {"type": "array", "items": {}, "x-kubernetes-list-type": "bag"}}}}`)),
			`M: properties.a.x-kubernetes-list-type: unknown list type "bag"`},
		{"one kind twice", "upstream refuses it",
			string(definitionsOf(
				`{"M": {"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]}, "N": {"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]}}`,
			)), "N: x-kubernetes-group-version-kind: g/v1, Kind=K is described twice, the first time by M"},
		{"too deep", "nothing may exhaust the stack", strings.Repeat(`{"definitions":`, 2000), "nested too deep"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := CompileV2([]byte(row.document))
			require.ErrorContains(t, err, row.want, row.why)
		})
	}
}

// FuzzCompileV2: nothing panics, and the graphs are upstream's wherever upstream
// takes the document. It refuses more, for reasons that do not concern topology.
func FuzzCompileV2(f *testing.F) {
	for _, row := range topologiesV2 {
		f.Add(row.definitions)
	}
	f.Add(`{"M": {"type": "array", "items": [{}, {}]}, "N": {"type": "x"}, "O": null}`)
	f.Add(`{"A": null}`)
	f.Fuzz(func(t *testing.T, schemas string) {
		document := definitionsOf(schemas)
		_, err := CompileV2(document)
		if !json.Valid(document) || strings.Contains(schemas, `\`) || yamlScalars.MatchString(schemas) {
			return // see TestWordsOfYAML
		}
		models, decodeErr := decodeV2(document)
		if decodeErr != nil {
			return // upstream passes over what is no schema
		}
		for _, m := range models {
			if m == nil {
				return // and over a null
			}
		}
		upstream, upstreamErr := upstreamV2(document)
		if upstreamErr != nil {
			return
		}
		if _, upstreamErr = managedfields.NewGVKParser(upstream, false); upstreamErr != nil {
			return
		}
		require.NoError(t, err)
		requireSameV2(t, document, false)
	})
}
