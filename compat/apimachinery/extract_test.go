package apimachinery_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// configuration is like an apply configuration: all fields are pointers.
type configuration struct {
	APIVersion *string           `json:"apiVersion,omitempty"`
	Kind       *string           `json:"kind,omitempty"`
	Metadata   map[string]any    `json:"metadata,omitempty"`
	Spec       map[string]any    `json:"spec,omitempty"`
	Status     map[string]any    `json:"status,omitempty"`
	Other      map[string]string `json:"other,omitempty"`
}

func upstreamType(t testing.TB, name string) smdtyped.ParseableType {
	t.Helper()
	s, err := schemaconv.ToSchemaFromOpenAPI(host{}.models(), false)
	require.NoError(t, err)
	p := smdtyped.Parser{Schema: smdschema.Schema{Types: s.Types}}
	return p.Type(name)
}

// TestExtractInto compares with upstream on the results of random applies, for unstructured objects and for Go structs
// with and without a kind.
func TestExtractInto(t *testing.T) {
	theirs := upstreamType(t, "v1")
	h := structs()
	found := 0
	for seed := range 300 {
		g := oracle.NewGen(oracle.Random(uint64(seed)))
		live := h.empty("v1")
		for range 4 {
			m := h.upstream("v1", []string{"", "status"}[g.Intn(2)])
			out, err := m.Apply(live, widget(g, "v1"), g.Manager(), true)
			require.NoError(t, err)
			live = aged(out, func() int { return 1 })
		}
		kindless := h.at(live, gv("v1")).(*WidgetV1)
		kindless.TypeMeta = metav1.TypeMeta{}
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(h.at(live, gv("v1")))
		require.NoError(t, err)
		for _, obj := range []runtime.Object{h.at(live, gv("v1")), kindless, &unstructured.Unstructured{Object: tree}} {
			before := oracle.JSON(obj)
			for _, manager := range []string{"kubectl", "ctl", "b", "hpa", "nobody"} {
				for _, subresource := range []string{"", "status"} {
					var up, own configuration
					upErr := managedfields.ExtractInto(obj, theirs, manager, &up, subresource)
					err := apimachinery.ExtractInto(obj, theirs, manager, &own, subresource)
					require.Equal(t, upErr == nil, err == nil, "upstream: %v, tenure: %v, of %s", upErr, err, before)
					if err == nil {
						equal, _ := oracle.EqualButEmptied(treeOf(up), treeOf(own))
						require.True(t, equal, "upstream: %s\ntenure: %s\n%s of %s", oracle.JSON(up), oracle.JSON(own), manager, before)
						found += len(own.Spec)
					}
				}
			}
			require.Equal(t, before, oracle.JSON(obj), "the object was changed")
		}
	}
	require.NotZero(t, found)
}

func TestExtractIntoErrors(t *testing.T) {
	typ := upstreamType(t, "v1")
	obj := intent("v1", tree{"note": "x"})
	entry := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager:    "m",
			Operation:  "Apply",
			APIVersion: "example.dev/v1",
			FieldsType: "FieldsV1",
			FieldsV1:   fieldsv1.New(fields),
		}
	}
	rows := []struct {
		name, why string
		obj       func() runtime.Object
		into      any
		want      string
	}{
		{
			"wrong type",
			"what is extracted would be wrong as well",
			func() runtime.Object { return intent("v1", tree{"note": int64(1)}) },
			&configuration{},
			"object: .spec.note: ",
		},
		{"no managed fields that parse", "the manager is named", func() runtime.Object {
			o := obj.DeepCopy()
			o.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"x": {}}`)})
			return o
		}, &configuration{}, `managed fields of "m": `},
		{"not a pointer", "there is nowhere to put it", func() runtime.Object {
			o := obj.DeepCopy()
			o.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"f:spec": {"f:note": {}}}`)})
			return o
		}, configuration{}, "apimachinery_test.configuration: "},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			require.ErrorContains(t, apimachinery.ExtractInto(row.obj(), typ, "m", row.into, ""), row.want, row.why)
		})
	}
	// An entry may own no existing field, or no field at all; upstream then fails.
	var up, own configuration
	o := obj.DeepCopy()
	o.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"f:spec": {"f:size": {}}}`)})
	require.NoError(t, managedfields.ExtractInto(o, upstreamType(t, "v1"), "m", &up, ""))
	require.NoError(t, apimachinery.ExtractInto(o, typ, "m", &own, ""))
	require.Equal(t, up, own)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{}`)})
	own = configuration{}
	require.Error(t, managedfields.ExtractInto(o, upstreamType(t, "v1"), "m", &up, ""))
	require.NoError(t, apimachinery.ExtractInto(o, typ, "m", &own, ""))
	require.Equal(t, configuration{}, own)
	// A field that a newer server accepted is not an error; upstream fails.
	newer := intent("v1", tree{"note": "x", "undeclared": true, "tags": []any{"a", "a"}})
	newer.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"f:spec": {"f:note": {}}}`)})
	var got configuration
	require.NoError(t, apimachinery.ExtractInto(newer, typ, "m", &got, ""))
	require.Equal(t, map[string]any{"note": "x"}, got.Spec)
	require.Error(t, managedfields.ExtractInto(newer, upstreamType(t, "v1"), "m", &got, ""))
}

// TestApplyGivesAnObjectOfItsOwn: a host may change the result of Apply while live is in a cache, whether or not Apply
// changed the object.
func TestApplyGivesAnObjectOfItsOwn(t *testing.T) {
	for _, h := range []host{structs(), customs()} {
		live := applied(t, h, step{"v1", "a", tree{"note": "x", "tags": []any{"t"}, "limits": tree{"k": "v"}}})
		before := oracle.JSON(live)
		for _, note := range []string{"x", "y"} {
			out, err := h.tenure("v1", "", start).Apply(live, intent("v1", tree{"note": note, "tags": []any{"t"}}), "a", false)
			require.NoError(t, err)
			scribble(out)
			require.Equal(t, before, oracle.JSON(live), h.name)
		}
	}
}

// TestNumbersOfGo: an intent that is written in Go may contain an int.
func TestNumbersOfGo(t *testing.T) {
	for _, h := range []host{structs(), customs(), schemaless()} {
		given := intent("v1", tree{"size": 3})
		out, err := h.tenure("v1", "", start).Apply(nil, given, "a", false)
		require.NoError(t, err, h.name)
		require.Regexp(t, `(?i)"size":3\b`, oracle.JSON(out), h.name)
	}
}

// scribble changes all values in obj, in place.
func scribble(obj runtime.Object) {
	switch o := obj.(type) {
	case *Widget:
		for i := range o.Tags {
			o.Tags[i] = "scribble"
		}
		if o.Note != nil {
			*o.Note = "scribble"
		}
		o.ManagedFields[0].Manager = "scribble"
		*o.ManagedFields[0].Time = metav1.NewTime(time.Unix(1, 0))
	case *unstructured.Unstructured:
		scribbleTree(o.Object)
	}
}

func scribbleTree(v any) {
	switch t := v.(type) {
	case map[string]any:
		for k, item := range t {
			scribbleTree(item)
			if _, ok := item.(string); ok {
				t[k] = "scribble"
			}
		}
	case []any:
		for i, item := range t {
			scribbleTree(item)
			if _, ok := item.(string); ok {
				t[i] = "scribble"
			}
		}
	}
}

func TestConstructorErrors(t *testing.T) {
	h := structs()
	construct := func(types managedfields.TypeConverter, filters map[smd.APIVersion]smd.Filter) error {
		_, err := apimachinery.NewDefaultFieldManager(
			types, h.converter, h.defaulter, h.creater, widgetKind("v1"), gv("v1"), "", filters,
		)
		return err
	}
	require.EqualError(t, construct(nil, nil), "no type converter, want one for the kind's versions")
	nothing := map[smd.APIVersion]smd.Filter{"example.dev/v1": smd.NewExcludeSetFilter(smd.NewSet(smd.Path{{}}))}
	require.EqualError(
		t,
		construct(tenureTypes(), nothing),
		`reset fields: filter of "example.dev/v1": the path element selects nothing, want a field, key, value or index`,
	)
	_, err := apimachinery.NewTypeConverter(nil, false)
	require.NoError(t, err)
	require.NotNil(t, must(apimachinery.Types(apimachinery.NewDeducedTypeConverter()).Type(widgetKind("v9"))))
	h2 := apimachinery.NewScaleHandler(nil, gv("v1"), apimachinery.ResourcePathMappings{"v1": smd.Path{{}}})
	for _, f := range []func() error{
		func() error { _, err := h2.ToSubresource(); return err },
		func() error { _, err := h2.ToParent(nil); return err },
	} {
		require.EqualError(
			t,
			f(),
			"path of replicas at v1: the path element selects nothing, want a field, key, value or index",
		)
	}
	var into configuration
	require.EqualError(t, apimachinery.ExtractInto(intent("v1", tree{}), smdtyped.ParseableType{}, "m", &into, ""),
		"type of object: no schema, want that of the type")
}

func TestValidateManagedFields(t *testing.T) {
	require.NoError(t, apimachinery.ValidateManagedFields(nil))
	err := apimachinery.ValidateManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Patch"}})
	require.EqualError(t, err, `managedFields[0] of manager "m": operation must be Apply or Update, got "Patch"`)
	for _, text := range []string{"", " \n"} {
		fields := fieldsv1.New(text)
		list := []metav1.ManagedFieldsEntry{
			{Manager: "m", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields},
		}
		require.EqualError(
			t,
			apimachinery.ValidateManagedFields(list),
			`managedFields[0] of manager "m": fieldsV1: expected an object, got no bytes`,
		)
		require.Error(t, managedfields.ValidateManagedFields(list), "upstream")
	}
}
