package apimachinery_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// hosts is a host's own TypeConverter. It counts calls.
type hosts struct {
	managedfields.TypeConverter
	asked int
}

func (h *hosts) ObjectToTyped(obj runtime.Object, options ...smdtyped.ValidationOptions) (*smdtyped.TypedValue, error) {
	h.asked++
	return h.TypeConverter.ObjectToTyped(obj, options...)
}

// TestTypesOfConverters: a type is the same, whichever TypeConverter it comes from.
func TestTypesOfConverters(t *testing.T) {
	for _, row := range []struct {
		name, why string
		converter managedfields.TypeConverter
	}{
		{"of this package", "has the types", apimachinery.Union(tenureTypes())},
		{"upstream's", "is asked for the type of an empty object", upstreamTypes()},
		{"of the host", "the type need not be upstream's", &hosts{TypeConverter: upstreamTypes()}},
		{"union", "the first that knows the kind counts",
			apimachinery.Union(upstreamTypes(), managedfields.NewDeducedTypeConverter())},
		{"there and back", "a schema is made of the type",
			&hosts{TypeConverter: apimachinery.FromTypes(apimachinery.Types(tenureTypes()))}},
		{"of a union", "", &hosts{TypeConverter: apimachinery.Union(apimachinery.NewDeducedTypeConverter(), tenureTypes())}},
	} {
		t.Run(row.name, func(t *testing.T) {
			types := apimachinery.Types(row.converter)
			found, err := types.Type(widgetKind("v1"))
			require.NoError(t, err, row.why)
			require.Same(t, found, must(types.Type(widgetKind("v1"))), "the same while the schema is")
			if row.name == "of a union" {
				require.Empty(t, maps.Collect(found.Map.Fields()), "the first knows every kind")
				return
			}
			want := must(apimachinery.Types(tenureTypes()).Type(widgetKind("v1")))
			for seed := range 200 {
				g := oracle.NewGen(oracle.Random(uint64(seed)))
				a, b := widget(g, "v1").Object, widget(g, "v1").Object
				require.True(t, want.FieldSet(a).Equal(found.FieldSet(a)), "%v", a)
				x, y := want.Compare(a, b), found.Compare(a, b)
				require.True(
					t,
					x.Added.Equal(y.Added) && x.Removed.Equal(y.Removed) && x.Modified.Equal(y.Modified),
					"%v and %v",
					a,
					b,
				)
				require.Equal(t, want.Validate(a, typed.Rules{}) == nil, found.Validate(a, typed.Rules{}) == nil)
			}
		})
	}
	h := schema.GroupVersionKind{Group: "other.dev", Version: "v1", Kind: "Thing"}
	_, err := apimachinery.Types(upstreamTypes()).Type(h)
	require.True(t, runtime.IsNotRegisteredError(err), "%v", err)
	_, err = apimachinery.Types(apimachinery.Union(upstreamTypes(), tenureTypes())).Type(h)
	require.True(t, runtime.IsNotRegisteredError(err), "%v", err)
	union := apimachinery.Union(upstreamTypes(), managedfields.NewDeducedTypeConverter())
	require.NotNil(t, must(apimachinery.Types(union).Type(h)))
	_, err = apimachinery.Union(upstreamTypes()).
		ObjectToTyped(&unstructured.Unstructured{Object: tree{"apiVersion": "other.dev/v1", "kind": "Thing"}})
	require.EqualError(t, err, "no type for other.dev/v1, Kind=Thing")
	_, err = apimachinery.FromTypes(apimachinery.Types(tenureTypes())).
		ObjectToTyped(&unstructured.Unstructured{Object: tree{"apiVersion": "other.dev/v1", "kind": "Thing"}})
	require.Error(t, err)
}

// TestConvertersConvert: a TypeConverter of this package converts objects like upstream's.
func TestConvertersConvert(t *testing.T) {
	for name, converter := range map[string]managedfields.TypeConverter{
		"compiled": tenureTypes(), "of types": apimachinery.FromTypes(apimachinery.Types(apimachinery.Union(tenureTypes()))),
		"union": apimachinery.Union(tenureTypes(), apimachinery.NewDeducedTypeConverter()),
	} {
		t.Run(name, func(t *testing.T) {
			requireSameConversions(t, upstreamTypes(), converter)
		})
	}
	requireSameConversions(t, managedfields.NewDeducedTypeConverter(), apimachinery.NewDeducedTypeConverter())
	scalar := smdtyped.DeducedParseableType
	v, err := scalar.FromUnstructured("x")
	require.NoError(t, err)
	_, err = tenureTypes().TypedToObject(v)
	require.EqualError(t, err, "expected the value of an object, got a string")
}

func requireSameConversions(t *testing.T, up, own managedfields.TypeConverter) {
	t.Helper()
	for seed := range 100 {
		g := oracle.NewGen(oracle.Random(uint64(seed)))
		u := widget(g, "v1")
		structured := structs().at(u, gv("v1"))
		for _, obj := range []runtime.Object{u, structured} {
			theirs, upErr := up.ObjectToTyped(obj)
			ours, err := own.ObjectToTyped(obj)
			require.Equal(t, upErr == nil, err == nil, "upstream: %v, tenure: %v", upErr, err)
			if err != nil {
				continue
			}
			a, err := theirs.ToFieldSet()
			require.NoError(t, err)
			b, err := ours.ToFieldSet()
			require.NoError(t, err)
			require.True(t, a.Equals(b), "upstream:\n%s\ntenure:\n%s", a, b)
			back, err := own.TypedToObject(ours)
			require.NoError(t, err)
			want, err := up.TypedToObject(theirs)
			require.NoError(t, err)
			require.Equal(t, oracle.JSON(want), oracle.JSON(back))
		}
	}
}

// TestConverterOfTypes: every built-in type is the same after it was converted to a schema and compiled again.
func TestConverterOfTypes(t *testing.T) {
	builtin := openapi.Builtin()
	converter := apimachinery.FromTypes(builtin)
	again := apimachinery.Types(&hosts{TypeConverter: converter})
	for _, kind := range builtin.Kinds() {
		if m := builtin.TypeFor(kind).Map; m == nil || m.Field("kind").Type == nil {
			continue // a WatchEvent is not an object
		}
		found := must(again.Type(kind))
		require.NotNil(t, found, kind)
		requireSameType(t, builtin.TypeFor(kind), found, kind.Kind, map[*typed.Type]bool{})
	}
	require.Same(t, converter, apimachinery.FromTypes(apimachinery.Types(converter)), "a TypeConverter stays what it is")
}

// requireSameType compares two graphs of types, without formats and nullability, which schemas of structured-merge-diff
// do not have.
func requireSameType(t *testing.T, want, got *typed.Type, path string, seen map[*typed.Type]bool) {
	t.Helper()
	if seen[want] {
		return
	}
	seen[want] = true
	require.Equal(t, want.Scalar, got.Scalar, path)
	require.Equal(t, want.List == nil, got.List == nil, path)
	require.Equal(t, want.Map == nil, got.Map == nil, path)
	if want.List != nil {
		require.Equal(t, want.List.IsSet(), got.List.IsSet(), path)
		require.Equal(t, slices.Collect(want.List.Keys()), slices.Collect(got.List.Keys()), path)
		requireSameType(t, want.List.Elem(), got.List.Elem(), path+"[]", seen)
	}
	if want.Map == nil {
		return
	}
	require.Equal(t, want.Map.IsAtomic(), got.Map.IsAtomic(), path)
	require.Equal(t, want.Map.IsUntyped(), got.Map.IsUntyped(), path)
	require.Len(t, maps.Collect(got.Map.Fields()), len(maps.Collect(want.Map.Fields())), path)
	for name, f := range want.Map.Fields() {
		require.Equal(t, f.Default, got.Map.Field(name).Default, path+"."+name)
		requireSameType(t, f.Type, got.Map.Field(name).Type, path+"."+name, seen)
	}
	require.Equal(t, want.Map.Elem() == nil, got.Map.Elem() == nil, path)
	if want.Map.Elem() != nil {
		requireSameType(t, want.Map.Elem(), got.Map.Elem(), path+"{}", seen)
	}
}

// TestSchemeTypeConverter: the types of a scheme are found by the names of their OpenAPI definitions.
func TestSchemeTypeConverter(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgetKind("v1"), &WidgetV1{})
	name, err := s.ToOpenAPIDefinitionName(widgetKind("v1"))
	require.NoError(t, err)
	widgets, err := schemaconv.ToSchemaFromOpenAPI(host{}.models(), false)
	require.NoError(t, err)
	defs := widgets.Types
	for i := range defs {
		if defs[i].Name == "v1" {
			defs = append(defs, smdschema.TypeDef{Name: name, Atom: defs[i].Atom})
			break
		}
	}
	parser := &smdtyped.Parser{Schema: smdschema.Schema{Types: defs}}
	types := apimachinery.Types(apimachinery.NewSchemeTypeConverter(s, parser))
	got := must(types.Type(widgetKind("v1")))
	want, err := smdv6.CachedType(&parser.Schema, parser.Type(name).TypeRef)
	require.NoError(t, err)
	require.Same(t, want, got)
	_, err = types.Type(widgetKind("v9"))
	require.True(t, runtime.IsNotRegisteredError(err), "%v", err)
}
