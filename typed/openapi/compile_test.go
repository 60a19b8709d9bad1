package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

// modelsOf decodes schemas by name, as they are in a document.
func modelsOf(t testing.TB, schemas string) map[string]*spec.Schema {
	t.Helper()
	var models map[string]*spec.Schema
	require.NoError(t, json.Unmarshal([]byte(schemas), &models))
	return models
}

var (
	number  = &typed.Type{Scalar: typed.Numeric}
	text    = &typed.Type{Scalar: typed.String}
	boolean = &typed.Type{Scalar: typed.Boolean}
	untyped = &typed.Type{Scalar: typed.Untyped}
)

func structOf(fields map[string]typed.Field) *typed.Type {
	return &typed.Type{Map: typed.NewMap(fields, nil)}
}

func mapOf(elem *typed.Type) *typed.Type { return &typed.Type{Map: typed.NewMap(nil, elem)} }

// topologies are schemas that upstream compiles to the same. want is the type of the model "M" where it has formats, of
// which upstream knows nothing, and defaults, which upstream keeps as they were decoded.
var topologies = []struct {
	name, why string
	models    string
	preserve  bool
	want      *typed.Type
}{
	{
		name:   "integer and number are numbers",
		why:    "topology knows one kind of number",
		models: `{"M": {"type": "object", "properties": {"i": {"type": "integer", "format": "int32"}, "n": {"type": "number"}}}}`,
	},
	{
		name:   "boolean",
		why:    "the only scalar without variants",
		models: `{"M": {"type": "boolean"}}`,
	},
	{
		name:   "string formats",
		why:    "byte is text on the wire; a value with any other format may be written in another way",
		models: `{"M": {"type": "object", "properties": {"s": {"type": "string"}, "b": {"type": "string", "format": "byte"}, "d": {"type": "string", "format": "date-time"}, "i": {"type": "string", "format": "int-or-string"}, "x": {"type": "string", "format": "made-up"}}}}`,
		want: structOf(
			map[string]typed.Field{"s": {Type: text}, "b": {Type: text}, "d": {Type: dateTimeType}, "i": {Type: untyped},
				"x": {Type: untyped}}),
	},
	{
		name:   "no type",
		why:    "it says nothing, so that all three shapes are allowed",
		models: `{"M": {}}`,
	},
	{
		name:   "int or string",
		why:    "the API server leaves out the type of such a field, which makes it anything",
		models: `{"M": {"type": "object", "properties": {"port": {"x-kubernetes-int-or-string": true}}}}`,
	},
	{
		name:   "no type but properties and items",
		why:    "the shapes that are described are used, the scalar stays possible",
		models: `{"M": {"properties": {"a": {"type": "string"}}, "items": {"type": "integer"}}}`,
	},
	{
		name:   "free-form object",
		why:    "an object without properties accepts anything",
		models: `{"M": {"type": "object"}}`,
	},
	{
		name:   "struct",
		why:    "declared fields close the object",
		models: `{"M": {"type": "object", "properties": {"a": {"type": "string"}}}}`,
	},
	{
		name:   "additionalProperties schema",
		why:    "a map with free keys",
		models: `{"M": {"type": "object", "additionalProperties": {"type": "string"}}}`,
	},
	{
		name:   "additionalProperties true",
		why:    "a schema is no more needed than a word that there are others",
		models: `{"M": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}}`,
	},
	{
		name:   "additionalProperties false",
		why:    "an object that allows nothing at all is not free-form",
		models: `{"M": {"type": "object", "additionalProperties": false}}`,
	},
	{
		name:   "entries that are inline and untyped",
		why:    "upstream does not reconcile such a map, although its entries are not deduced",
		models: `{"M": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}}}`,
	},
	{
		name:   "entries that are dates",
		why:    "a formatted string is an untyped scalar too",
		models: `{"M": {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}}}`,
		want:   &typed.Type{Map: typed.UntypedMap(dateTimeType)},
	},
	{
		name:   "entries that are quantities",
		why:    "a type that is referred to does not count as untyped",
		models: `{"M": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}}, "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"}}`,
		want:   mapOf(quantityType),
	},
	{
		name:   "quantities of custom resources",
		why:    "generators write their pattern beside int-or-string",
		models: `{"M": {"x-kubernetes-int-or-string": true, "pattern": ` + strconv.Quote(quantityPattern) + `}}`,
		want: &typed.Type{Scalar: typed.Untyped, List: typed.Deduced().List, Map: typed.Deduced().Map,
			Format: "quantity"},
	},
	{
		name:   "raw extension",
		why:    "its schema says object, but it is owned as a whole",
		models: `{"M": {"$ref": "x"}, "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"}, "N": {"type": "array", "items": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.runtime.RawExtension"}}}`,
	},
	{
		name:   "preserve unknown fields",
		why:    "opens a struct, and all that is inline below, but nothing beside it",
		models: `{"M": {"type": "object", "properties": {"open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"in": {"type": "object", "properties": {"a": {"type": "string"}}}}}, "shut": {"type": "object", "properties": {"a": {"type": "string"}}}}}}`,
	},
	{
		name:   "preserve unknown fields, not of what is referred to",
		why:    "a model has one type, wherever it is used",
		models: `{"M": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"n": {"$ref": "N"}}}, "N": {"type": "object", "properties": {"a": {"type": "string"}}}}`,
	},
	{
		name:     "preserve unknown fields everywhere",
		why:      "the argument opens every struct of every model",
		preserve: true,
		models:   `{"M": {"type": "object", "properties": {"a": {"type": "string"}}}}`,
	},
	{
		name:   "preserve unknown fields: false",
		why:    "only true is an opt-in",
		models: `{"M": {"type": "object", "x-kubernetes-preserve-unknown-fields": false, "properties": {"a": {"type": "string"}}}}`,
	},
	{
		name:   "list without a list type",
		why:    "lists are atomic unless something is said",
		models: `{"M": {"type": "array", "items": {"type": "string"}}}`,
	},
	{
		name:   "list type atomic",
		why:    "the list type comes before the patch strategy",
		models: `{"M": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic", "x-kubernetes-patch-strategy": "merge"}}`,
	},
	{
		name:   "list type set",
		why:    "items are their own keys",
		models: `{"M": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}`,
	},
	{
		name:   "list type map",
		why:    "keys keep their order, and their defaults are whole numbers",
		models: `{"M": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {"type": "object", "properties": {"port": {"type": "integer", "default": 80}, "protocol": {"type": "string", "default": "TCP"}}}}}`,
	},
	{
		name:   "list type map without keys",
		why:    "upstream treats an associative list without keys as a set",
		models: `{"M": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [1]}}`,
	},
	{
		name:   "patch strategy merge with a key",
		why:    "types older than list types say it so",
		models: `{"M": {"type": "array", "items": {"type": "object"}, "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name"}}`,
	},
	{
		name:   "patch strategy merge without a key",
		why:    "finalizers: a set",
		models: `{"M": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"}}`,
	},
	{
		name:   "patch strategy retainKeys",
		why:    "it says nothing of items",
		models: `{"M": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "retainKeys", "x-kubernetes-patch-merge-key": "name"}}`,
	},
	{
		name:   "map type atomic and granular",
		why:    "granular is also the default",
		models: `{"M": {"type": "object", "properties": {"a": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}}, "g": {"type": "object", "x-kubernetes-map-type": "granular", "additionalProperties": {"type": "string"}}}}}`,
	},
	{
		name:   "map type beside a reference",
		why:    "it concerns that use only, both ways, through allOf as well",
		models: `{"M": {"type": "object", "properties": {"plain": {"$ref": "N"}, "atomic": {"$ref": "N", "x-kubernetes-map-type": "atomic"}, "granular": {"allOf": [{"$ref": "A"}], "x-kubernetes-map-type": "granular"}}}, "N": {"type": "object", "additionalProperties": {"type": "string"}}, "A": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"}}`,
	},
	{
		name:   "map type beside a reference to a list",
		why:    "atomic makes the list atomic, granular has no meaning for it",
		models: `{"M": {"type": "object", "properties": {"atomic": {"$ref": "L", "x-kubernetes-map-type": "atomic"}, "granular": {"$ref": "L", "x-kubernetes-map-type": "granular"}}}, "L": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}`,
	},
	{
		name:   "map type beside a reference to anything",
		why:    "where there is a map, the list keeps its kind",
		models: `{"M": {"type": "object", "properties": {"a": {"$ref": "N", "x-kubernetes-map-type": "atomic"}}}, "N": {"items": {"type": "string"}, "x-kubernetes-list-type": "set"}}`,
	},
	{
		name:   "map type beside a reference to a scalar",
		why:    "upstream finds no such type when an object uses it",
		models: `{"M": {"type": "object", "properties": {"a": {"$ref": "S", "x-kubernetes-map-type": "atomic"}}}, "S": {"type": "string"}}`,
	},
	{
		name:   "reference to nothing, and to an alias",
		why:    "both resolve to no type, which concerns only objects that use it",
		models: `{"M": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Missing"}, "b": {"$ref": "Alias"}}}, "Alias": {"$ref": "M"}}`,
	},
	{
		name:   "references to upstream's own names",
		why:    "a model of that name does not hide them",
		models: `{"M": {"type": "object", "properties": {"a": {"$ref": "__untyped_atomic_"}, "d": {"type": "object", "additionalProperties": {"$ref": "__untyped_deduced_"}}}}, "__untyped_deduced_": {"type": "string"}}`,
	},
	{
		name:   "allOf of two references",
		why:    "only a single one is a reference; the field is then inline and without a type",
		models: `{"M": {"type": "object", "properties": {"a": {"allOf": [{"$ref": "M"}, {"$ref": "M"}]}}}}`,
	},
	{
		name:   "list without a type or items",
		why:    "only an array must say what its items are",
		models: `{"M": {"x-kubernetes-list-type": "set"}}`,
	},
	{
		name:   "defaults",
		why:    "kept as plain JSON, whole numbers as integers at any depth",
		models: `{"M": {"type": "object", "properties": {"a": {"type": "number", "default": 1.5}, "b": {"default": {"x": [1, "y", null]}}, "c": {"type": "boolean", "default": false}, "d": {"default": null}}}}`,
		want: structOf(map[string]typed.Field{
			"a": {Type: number, Default: 1.5},
			"b": {Type: typed.Deduced(), Default: map[string]any{"x": []any{int64(1), "y", nil}}},
			"c": {Type: boolean, Default: false},
			"d": {Type: typed.Deduced()},
		}),
	},
}

func TestTopologyOfSchemas(t *testing.T) {
	for _, row := range topologies {
		t.Run(row.name, func(t *testing.T) {
			models := modelsOf(t, row.models)
			c := newCompiler(models, nil)
			c.run(row.preserve)
			require.NoError(t, joined(c.errs))
			if row.want != nil {
				require.Equal(t, row.want, c.refer("M"), row.why)
			}
			requireSame(t, models, row.preserve)
		})
	}
}

// TestRefusedSchemas: upstream must refuse each of them too.
func TestRefusedSchemas(t *testing.T) {
	rows := []struct{ name, why, models, want string }{
		{
			"unknown type",
			"the error tells the place, what is there and what may be",
			`{"M": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a.b": {"type": "map"}}}}}}`,
			`M: properties.spec.properties["a.b"].type: unrecognized type "map", want object, array, string, integer, number or boolean`,
		},
		{
			"unknown list type", "a typing error must not make a list atomic in silence",
			`{"M": {"type": "array", "items": {}, "x-kubernetes-list-type": "sets"}}`,
			`M: x-kubernetes-list-type: unknown list type "sets", want atomic, set or map`,
		},
		{
			"no keys", "a list of type map must have them",
			`{"M": {"type": "object", "additionalProperties": {"type": "array", "items": {}, "x-kubernetes-list-type": "map"}}}`,
			`M: additionalProperties.x-kubernetes-list-map-keys: missing, want the key fields of a list of type map`,
		},
		{
			"keys are no list", "one key is also written as a list",
			`{"M": {"type": "array", "items": {}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": "name"}}`,
			`M: x-kubernetes-list-map-keys: got "name", want a list of field names`,
		},
		{
			"unknown patch strategy",
			"$patch strategies such as replace have no topology",
			`{"M": {"type": "array", "items": {}, "x-kubernetes-patch-strategy": "replace"}}`,
			`M: x-kubernetes-patch-strategy: unknown patch strategy "replace", want merge, retainKeys or both as "merge,retainKeys"`,
		},
		{
			"merge key is no name",
			"there is only one",
			`{"M": {"type": "array", "items": {}, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": ["a"]}}`,
			`M: x-kubernetes-patch-merge-key: got []interface {}{"a"}, want the name of a field`,
		},
		{
			"unknown map type", "also beside a reference",
			`{"M": {"type": "object", "properties": {"a": {"$ref": "M", "x-kubernetes-map-type": 1}}}}`,
			`M: properties.a.x-kubernetes-map-type: unknown map type 1, want atomic or granular`,
		},
		{
			"array without items", "the items' type cannot be guessed",
			`{"M": {"type": "array", "items": {"type": "array"}}}`,
			`M: items.items: missing, want the schema of the array's items`,
		},
		{
			"tuple", "items must be all alike",
			`{"M": {"type": "array", "items": [{"type": "string"}, {}]}}`,
			`M: items: got a list of 2 schemas, want one schema`,
		},
		{
			"several faults", "all are told, by model and field",
			`{"B": {"type": "x"}, "A": {"type": "object", "properties": {"z": {"type": "y"}, "a": {"type": "array"}}}}`,
			"A: properties.a.items: missing, want the schema of the array's items\n" +
				"A: properties.z.type: unrecognized type \"y\", want object, array, string, integer, number or boolean\n" +
				"B: type: unrecognized type \"x\", want object, array, string, integer, number or boolean",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			models := modelsOf(t, row.models)
			_, err := Compile(models, false)
			require.EqualError(t, err, row.want, row.why)
			var located *SchemaError
			require.ErrorAs(t, err, &located)
			_, err = schemaconv.ToSchemaFromOpenAPI(models, false)
			require.Error(t, err, "upstream accepts it")
		})
	}
}

func TestCompileRefusesWhatOnlyCodeCanBuild(t *testing.T) {
	_, err := Compile(map[string]*spec.Schema{"M": nil}, false)
	require.EqualError(t, err, "M: no schema, want an object")

	// Two branches that lead back: a walk of all paths would never end.
	endless := &spec.Schema{}
	endless.Items = &spec.SchemaOrArray{Schema: endless}
	endless.AdditionalProperties = &spec.SchemaOrBool{Schema: endless}
	_, err = Compile(map[string]*spec.Schema{"M": endless}, false)
	require.ErrorContains(t, err, "nested too deep, want at most 1000 levels")

	loop := map[string]any{}
	loop["again"] = loop
	m := spec.MapProperty(nil).SetProperty("a", *new(spec.Schema).WithDefault(loop))
	_, err = Compile(map[string]*spec.Schema{"M": m}, false)
	require.EqualError(t, err, "M: properties.a.default: the default is nested too deep")
}

func TestKindsOfModels(t *testing.T) {
	models := modelsOf(t, `{
		"P": {"type": "string", "x-kubernetes-group-version-kind": [
			{"group": "", "version": "v1", "kind": "P"}, {"group": "g", "version": "v2", "kind": "P"},
			{"group": "g", "version": "v1beta1", "kind": "P"}, {"group": "g", "version": "v10", "kind": "P"},
			{"group": "g", "version": "v3", "kind": ""}, {"version": "v4", "kind": "NoGroup"}, "text"]},
		"NoList": {"x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "Q"}},
		"Alias": {"$ref": "P", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Alias"}]}
	}`)
	r, err := Compile(models, false)
	require.NoError(t, err)
	require.Equal(t, []schema.GroupVersionKind{
		{Version: "v1", Kind: "Alias"}, {Version: "v1", Kind: "P"},
		{Group: "g", Version: "v10", Kind: "P"}, {Group: "g", Version: "v1beta1", Kind: "P"},
		{Group: "g", Version: "v2", Kind: "P"},
	}, r.Kinds())
	require.Equal(t, []string{"v10", "v2", "v1beta1"}, r.Versions(schema.GroupKind{Group: "g", Kind: "P"}))
	require.Equal(t, text, r.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "P"}))
	require.Equal(t, &typed.Type{}, r.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Alias"}))
	require.Nil(t, r.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Q"}))

	converter, err := managedfields.NewTypeConverter(models, false)
	require.NoError(t, err)
	for _, gvk := range append(r.Kinds(), schema.GroupVersionKind{Version: "v1", Kind: "Q"}) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		_, err := converter.ObjectToTyped(u)
		unknown := err != nil && strings.Contains(err.Error(), "no corresponding type")
		require.Equal(t, r.TypeFor(gvk) == nil, unknown, "%v: %v", gvk, err)
	}
}

func TestKindsInYAMLMaps(t *testing.T) {
	m := spec.StringProperty()
	m.AddExtension("x-kubernetes-group-version-kind", []any{map[any]any{"group": "g", "version": "v1", "kind": "K"}})
	// Of two models with one kind the last counts, whatever the order of the map.
	r, err := Compile(map[string]*spec.Schema{"A": m, "B": {VendorExtensible: m.VendorExtensible}}, false)
	require.NoError(t, err)
	require.Equal(t, typed.Deduced(), r.TypeFor(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}))
}

func TestRowNamesAreUnique(t *testing.T) {
	names := map[string]bool{}
	for _, row := range topologies {
		names[row.name] = true
	}
	require.Len(t, slices.Collect(maps.Keys(names)), len(topologies))
}
