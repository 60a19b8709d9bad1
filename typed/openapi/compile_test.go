package openapi

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/typed"
)

// modelsOf decodes schemas by name, as in a document.
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

// schemas are rows of testdata/schemas.yaml.
type schemas struct {
	Name, Why string
	Models    json.RawMessage
	Preserve  bool
	Error     string // expected error of rejected schemas
}

// schemasOf returns the rejected rows if refused is true, otherwise the others.
func schemasOf(t testing.TB, refused bool) []schemas {
	t.Helper()
	data, err := os.ReadFile("testdata/schemas.yaml")
	require.NoError(t, err)
	var all []schemas
	require.NoError(t, yaml.UnmarshalStrict(data, &all))
	names := map[string]bool{}
	for _, row := range all {
		require.NotEmpty(t, row.Why, row.Name)
		names[row.Name] = true
	}
	require.Len(t, names, len(all), "names are unique")
	return slices.DeleteFunc(all, func(row schemas) bool { return (row.Error != "") != refused })
}

// wants are the expected types of the model "M" with formats, which upstream ignores, and with defaults, which upstream
// keeps in their decoded form.
var wants = map[string]*typed.Type{
	"string formats": structOf(
		map[string]typed.Field{"s": {Type: text}, "b": {Type: text}, "d": {Type: dateTimeType}, "i": {Type: untyped},
			"x": {Type: untyped}}),
	"entries that are dates":      {Map: typed.UntypedMap(dateTimeType)},
	"entries that are quantities": mapOf(quantityType),
	"quantities of custom resources": {
		Scalar: typed.Untyped, List: typed.Deduced().List, Map: typed.Deduced().Map, Format: "quantity",
	},
	"defaults": structOf(map[string]typed.Field{
		"a": {Type: number, Default: 1.5},
		"b": {Type: typed.Deduced(), Default: map[string]any{"x": []any{int64(1), "y", nil}}},
		"c": {Type: boolean, Default: false},
		"d": {Type: typed.Deduced()},
	}),
}

func TestTopologyOfSchemas(t *testing.T) {
	met := 0
	for _, row := range schemasOf(t, false) {
		t.Run(row.Name, func(t *testing.T) {
			models := modelsOf(t, string(row.Models))
			c := compileModels(models, nil, compiler{preserve: row.Preserve})
			require.Empty(t, c.errs)
			if want := wants[row.Name]; want != nil {
				require.Equal(t, want, c.refer("M"), row.Why)
				met++
			}
			requireSame(t, models, row.Preserve)
		})
	}
	require.Len(t, wants, met)
}

// TestRefusedSchemas shows schemas that both Tenure and upstream reject.
func TestRefusedSchemas(t *testing.T) {
	for _, row := range schemasOf(t, true) {
		t.Run(row.Name, func(t *testing.T) {
			models := modelsOf(t, string(row.Models))
			_, err := Compile(models, false)
			require.EqualError(t, err, row.Error, row.Why)
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

	// Two branches contain the schema itself: a walk of all paths would never end.
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
	// If two models describe one kind, the last one by name is used, whatever the iteration order of the map.
	r, err := Compile(map[string]*spec.Schema{"A": m, "B": {VendorExtensible: m.VendorExtensible}}, false)
	require.NoError(t, err)
	require.Equal(t, typed.Deduced(), r.TypeFor(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}))
}
