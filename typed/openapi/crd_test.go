package openapi

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/tenure-ssa/tenure/typed"
)

func treeOf(t testing.TB, data string) map[string]any {
	t.Helper()
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(data), &tree))
	return tree
}

// crdOf returns a CustomResourceDefinition of things.example.com/v1 with the given schema.
func crdOf(schema string) string {
	return `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
		"spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": ` + schema + `}}]}}`
}

var thing = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

// requireSameCRD compares each version of crd with the type that upstream makes from models. The models are built as an
// API server builds them: the schema is decoded, completed, and put beside the model of metadata.
func requireSameCRD(t *testing.T, data string) *Registry {
	t.Helper()
	crd := treeOf(t, data)
	r, err := CompileCRD([]byte(data))
	require.NoError(t, err)
	body := crd["spec"].(map[string]any)
	preserve, _ := body["preserveUnknownFields"].(bool)
	for _, item := range body["versions"].([]any) {
		version := item.(map[string]any)
		models, err := decodeV3(embeddedDocuments(t)["apis/coordination.k8s.io/v1"])
		require.NoError(t, err)
		models["version"] = upstreamModel(t, version)
		theirs, err := schemaconv.ToSchemaFromOpenAPI(models, preserve)
		require.NoError(t, err)
		name := "version"
		o := oracle{schema: theirs, met: map[pair]bool{}}
		ours := r.TypeFor(schema.GroupVersionKind{
			Group:   body["group"].(string),
			Version: version["name"].(string),
			Kind:    body["names"].(map[string]any)["kind"].(string),
		})
		require.NotNil(t, ours)
		require.NoError(t, o.compare(smd.TypeRef{NamedType: &name}, ours, name))
	}
	return r
}

func upstreamModel(t *testing.T, version map[string]any) *spec.Schema {
	t.Helper()
	validation, _ := version["schema"].(map[string]any)
	root, ok := validation["openAPIV3Schema"]
	if !ok {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	}
	data, err := json.Marshal(root)
	require.NoError(t, err)
	m := &spec.Schema{}
	require.NoError(t, json.Unmarshal(data, m))
	complete := func(m *spec.Schema) {
		m.SetProperty("apiVersion", *spec.StringProperty())
		m.SetProperty("kind", *spec.StringProperty())
		m.SetProperty("metadata", *spec.RefSchema("#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"))
	}
	var embeddedIn func(m *spec.Schema)
	embeddedIn = func(m *spec.Schema) {
		for name, p := range m.Properties {
			embeddedIn(&p)
			m.Properties[name] = p
		}
		if m.Items != nil {
			embeddedIn(m.Items.Schema)
		}
		if m.AdditionalProperties != nil && m.AdditionalProperties.Schema != nil {
			embeddedIn(m.AdditionalProperties.Schema)
		}
		if m.Extensions["x-kubernetes-embedded-resource"] == true {
			complete(m)
		}
	}
	complete(m)
	embeddedIn(m)
	return m
}

func TestWidget(t *testing.T) {
	data, err := os.ReadFile("testdata/widget.json")
	require.NoError(t, err)
	r := requireSameCRD(t, string(data))
	widget := schema.GroupVersionKind{Group: "trace.example.dev", Version: "v1", Kind: "Widget"}
	require.Equal(t, []string{"v1", "v1beta1"}, r.Versions(widget.GroupKind()))
	fields := r.TypeFor(widget).Map.Field
	require.Same(t, objectMeta(false), fields("metadata").Type)
	ports := fields("spec").Type.Map.Field("ports").Type.List
	require.Equal(t, []string{"port", "protocol"}, slices.Collect(ports.Keys()))
	require.Equal(t, "TCP", ports.Elem().Map.Field("protocol").Default)
}

func TestCompileCRD(t *testing.T) {
	rows := []struct {
		name, why, crd string
		check          func(t *testing.T, m *typed.Map)
	}{
		{
			"closed struct", "apiVersion, kind and metadata are there although the schema does not say so",
			crdOf(`{"type": "object", "properties": {"spec": {"type": "object"}}}`),
			func(t *testing.T, m *typed.Map) {
				require.Equal(t, text, m.Field("apiVersion").Type)
				require.Equal(t, text, m.Field("kind").Type)
				require.Same(t, objectMeta(false), m.Field("metadata").Type)
				require.Nil(t, m.Elem())
			},
		},
		{
			"metadata in the schema",
			"it may only restrict names; its topology is the built-in one",
			crdOf(
				`{"type": "object", "properties": {"kind": {"type": "integer"}, "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}}}`,
			),
			func(t *testing.T, m *typed.Map) {
				require.Same(t, objectMeta(false), m.Field("metadata").Type)
				require.Equal(t, text, m.Field("kind").Type)
			},
		},
		{
			"embedded resources", "also in items, in entries, and in one another",
			crdOf(`{"type": "object", "properties": {
				"one": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
				"many": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": {"type": "object"}, "in": {"type": "object", "x-kubernetes-embedded-resource": true}}}},
				"named": {"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-embedded-resource": true}}}}`),
			func(t *testing.T, m *typed.Map) {
				first := m.Field("one").Type.Map
				require.Same(t, objectMeta(false), first.Field("metadata").Type)
				require.Equal(t, typed.Deduced(), first.Elem())
				require.False(t, first.IsUntyped())
				item := m.Field("many").Type.List.Elem().Map
				require.Same(t, objectMeta(false), item.Field("metadata").Type)
				require.Same(t, objectMeta(false), item.Field("in").Type.Map.Field("metadata").Type)
				require.Same(t, objectMeta(false), m.Field("named").Type.Map.Elem().Map.Field("metadata").Type)
			},
		},
		{
			"no schema", "the server then publishes an object without properties, so that even metadata is free",
			`{"spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1"}]}}`,
			func(t *testing.T, m *typed.Map) {
				require.Equal(t, typed.UntypedMap(typed.Deduced()), m)
			},
		},
		{
			"null schema", "null is absent",
			`{"spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": null}]}}`,
			func(t *testing.T, m *typed.Map) { require.True(t, m.IsUntyped()) },
		},
		{
			"preserveUnknownFields of the definition",
			"opens every struct, metadata too",
			`{"spec": {"group": "example.com", "names": {"kind": "Thing"}, "preserveUnknownFields": true, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}}}]}}`,
			func(t *testing.T, m *typed.Map) {
				require.Equal(t, typed.Deduced(), m.Elem())
				require.Equal(t, typed.Deduced(), m.Field("spec").Type.Map.Elem())
				require.Equal(t, typed.Deduced(), m.Field("metadata").Type.Map.Elem())
			},
		},
		{
			"preserve unknown fields at the root", "the declared fields stay what they are",
			crdOf(`{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`),
			func(t *testing.T, m *typed.Map) {
				require.Equal(t, typed.Deduced(), m.Elem())
				require.Same(t, objectMeta(false), m.Field("metadata").Type)
			},
		},
		{
			"int-or-string, nullable, formats, defaults",
			"as in any schema",
			crdOf(
				`{"type": "object", "properties": {"size": {"x-kubernetes-int-or-string": true}, "maybe": {"type": "string", "nullable": true}, "at": {"type": "string", "format": "date-time"}, "n": {"type": "integer", "default": 3}}}`,
			),
			func(t *testing.T, m *typed.Map) {
				require.Equal(t, typed.Deduced(), m.Field("size").Type)
				require.Equal(t, text, m.Field("maybe").Type)
				require.Equal(t, dateTimeType, m.Field("at").Type)
				require.Equal(t, int64(3), m.Field("n").Default)
			},
		},
		{
			"quantities", "by the pattern that generators write",
			crdOf(`{"type": "object", "properties": {"size": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "pattern": ` +
				strconv.Quote(quantityPattern) + `}}}`),
			func(t *testing.T, m *typed.Map) {
				require.Equal(t, "quantity", m.Field("size").Type.Format)
			},
		},
		{
			"list types, map types",
			"the three extensions of topology",
			crdOf(
				`{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "b": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, "c": {"type": "object", "additionalProperties": true, "x-kubernetes-map-type": "atomic"}}}`,
			),
			func(t *testing.T, m *typed.Map) {
				require.True(t, m.Field("a").Type.List.IsSet())
				require.Equal(t, []string{"k"}, slices.Collect(m.Field("b").Type.List.Keys()))
				require.True(t, m.Field("c").Type.Map.IsAtomic())
			},
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := requireSameCRD(t, row.crd)
			require.Equal(t, []schema.GroupVersionKind{thing}, r.Kinds())
			m := r.TypeFor(thing).Map
			require.NotNil(t, m, row.why)
			row.check(t, m)
		})
	}
}

// TestCRDKeepsTopologyAlone: keywords that a server prunes from the definition or uses only for validation have no
// effect, and defaults are exact.
func TestCRDKeepsTopologyAlone(t *testing.T) {
	r, err := CompileCRD([]byte(crdOf(`{"type": "object", "discriminator": {"propertyName": "x"}, "properties": {
		"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge", "readOnly": "x"},
		"b": {"type": "string", "allOf": [{"$ref": "#/components/schemas/v1"}]},
		"c": {"type": "integer", "default": 9007199254740993},
		"d": {"type": "array", "items": {"type": "object", "properties": {"e": {"default": {"f": 9007199254740993}}}}}}}`)))
	require.NoError(t, err)
	fields := r.TypeFor(thing).Map.Field
	require.True(t, fields("a").Type.List.IsAtomic())
	require.Equal(t, text, fields("b").Type)
	require.Equal(t, int64(9007199254740993), fields("c").Default)
	require.Equal(t, map[string]any{"f": int64(9007199254740993)},
		fields("d").Type.List.Elem().Map.Field("e").Default)
}

func TestCompileCRDErrors(t *testing.T) {
	const at = "things.example.com: spec.versions[0].schema.openAPIV3Schema"
	rows := []struct{ name, why, crd, want string }{
		{
			"v1beta1",
			"its schemas are elsewhere",
			`{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "spec": {"group": "g", "names": {"kind": "K"}, "versions": [{"name": "v1"}]}}`,
			`CustomResourceDefinition: apiVersion: got "apiextensions.k8s.io/v1beta1", want "apiextensions.k8s.io/v1"`,
		},
		{
			"another kind", "the mistake of a list of manifests",
			`{"kind": "Pod", "spec": {"group": "g", "names": {"kind": "K"}, "versions": [{"name": "v1"}]}}`,
			`CustomResourceDefinition: kind: got "Pod", want "CustomResourceDefinition"`,
		},
		{
			"nothing", "every name that is needed is asked for at once", `{}`,
			"CustomResourceDefinition: spec.group: missing, want a name\n" +
				"CustomResourceDefinition: spec.names.kind: missing, want a name\n" +
				"CustomResourceDefinition: spec.versions: missing, want at least one version",
		},
		{
			"wrong types", "the decoder's error, with the name of the definition",
			`{"metadata": {"name": "things"}, "spec": {"group": 1}}`,
			`things: spec.group: got number, want a string`,
		},
		{
			"a version twice", "one would hide the other",
			`{"spec": {"group": "g", "names": {"kind": "K"}, "versions": [{"name": "v1"}, {"name": "v1"}]}}`,
			`CustomResourceDefinition: spec.versions[1].name: version "v1" is listed twice`,
		},
		{
			"$ref", "the API server refuses it", crdOf(`{"type": "object", "properties": {"a": {"$ref": "#/x"}}}`),
			at + `.properties.a.$ref: not allowed in a CustomResourceDefinition, want the schema itself`,
		},
		{
			"wrong types of keywords", "a server refuses them, and a decoder of schemas does not",
			crdOf(`{"type": ["object", "null"], "properties": {
				"a": {"x-kubernetes-preserve-unknown-fields": "true"}, "b": {"items": {"x-kubernetes-embedded-resource": 1}},
				"c": {"additionalProperties": {"x-kubernetes-list-map-keys": ["x", 1]}}, "d": {"$ref": 1}}}`),
			at + ".type: got a list, want one type\n" +
				at + ".properties.a.x-kubernetes-preserve-unknown-fields: got \"true\", want true or false\n" +
				at + ".properties.b.items.x-kubernetes-embedded-resource: got 1, want true or false\n" +
				at + ".properties.c.additionalProperties.x-kubernetes-list-map-keys: got [x 1], want the names of fields\n" +
				at + ".properties.d.$ref: not allowed in a CustomResourceDefinition, want the schema itself",
		},
		{
			"wrong types in the schema", "the place of the schema; what follows is the decoder's, and differs by its version",
			crdOf(`{"type": "object", "properties": {"a": "string"}}`),
			at + ": cannot decode: json: cannot unmarshal ",
		},
		{
			"faults of topology", "found by the compiler, placed in the definition",
			crdOf(`{"type": "object", "properties": {"a": {"type": "array", "items": {}, "x-kubernetes-list-type": "map"}}}`),
			at + `.properties.a.x-kubernetes-list-map-keys: missing, want the key fields of a list of type map`,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := CompileCRD([]byte(row.crd))
			require.Error(t, err)
			// The decoder chooses its words by a hash of the program, so that nobody depends on them.
			got := strings.Replace(err.Error(), "unable to unmarshal", "cannot unmarshal", 1)
			if strings.HasSuffix(row.want, "unmarshal ") {
				got = got[:min(len(got), len(row.want))]
			}
			require.Equal(t, row.want, got, row.why)
		})
	}
}
