package apimachinery_test

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// clock makes the times in examples reproducible.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func parse(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return u
}

// This server has Go structs: live objects have the internal type, and requests have version v1.
func ExampleNewDefaultFieldManager() {
	var schemas map[string]*spec.Schema
	if err := json.Unmarshal([]byte(models), &schemas); err != nil {
		panic(err)
	}
	types, err := apimachinery.NewTypeConverter(schemas, false)
	if err != nil {
		panic(err)
	}
	s := newScheme()
	kind := schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"}
	hub := schema.GroupVersion{Group: "example.dev", Version: runtime.APIVersionInternal}
	m, err := apimachinery.NewDefaultFieldManager(types, runtime.UnsafeObjectConvertor(s), s, s, kind, hub, "",
		map[smd.APIVersion]smd.Filter{"example.dev/v1": smd.NewExcludeSetFilter(smd.NewSet(smd.MakePathOrDie("status")))},
		func(o *fieldmanager.Options) { o.Clock = clock },
		func(o *fieldmanager.Options) { o.Warnings = func(w fieldmanager.Warning) { fmt.Println(w) } },
	)
	if err != nil {
		panic(err)
	}
	intent := parse(`{"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"},
		"spec": {"note": "n", "ports": [{"name": "http"}]}}`)
	out, err := m.Apply(&Widget{}, intent, "me", false)
	if err != nil {
		panic(err)
	}
	w := out.(*Widget)
	fmt.Println(*w.Note, w.Ports[0].Name, *w.Ports[0].Protocol)
	fmt.Println(w.ManagedFields[0].FieldsV1.String())
	// Output:
	// n http TCP
	// {"f:spec":{"f:note":{},"f:ports":{"k:{\"name\":\"http\"}":{".":{},"f:name":{}}}}}
}

// This server has custom resources without a schema.
func ExampleNewDefaultCRDFieldManager() {
	kind := schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"}
	c := &custom{scheme: newScheme()}
	m, err := apimachinery.NewDefaultCRDFieldManager(
		apimachinery.NewDeducedTypeConverter(), c, c, c, kind, kind.GroupVersion(), "", nil,
		func(o *fieldmanager.Options) { o.Clock = clock })
	if err != nil {
		panic(err)
	}
	live := parse(`{"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}}`)
	updated := parse(`{"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"},
		"spec": {"anything": ["goes"]}}`)
	// Update returns its argument, now with managed fields.
	stored, err := m.Update(live, updated, "me")
	if err != nil {
		panic(err)
	}
	fmt.Println(stored == runtime.Object(updated), len(updated.GetManagedFields()))
	// Output: true 1
}

// With this TypeConverter, built-in kinds have schemas, and all other kinds have none.
func ExampleUnion() {
	converter := apimachinery.Union(
		apimachinery.FromTypes(openapi.Builtin()),
		apimachinery.NewDeducedTypeConverter())
	types := apimachinery.Types(converter)
	pod, _ := types.Type(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	widget, _ := types.Type(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"})
	fmt.Println(pod.Map.Field("spec").Type != nil, widget == typed.Deduced())
	// Output: true true
}

// Types asks the host's TypeConverter for the schema of a kind.
func ExampleTypes() {
	host := upstreamTypes() // a managedfields.TypeConverter
	kind := schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"}
	m, err := fieldmanager.New(kind, apimachinery.Types(host), fieldmanager.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	intent := parse(`{"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"note": "n"}}`)
	out, err := writetest.Apply(m, nil, intent, "me", false)
	if err != nil {
		panic(err)
	}
	fmt.Println(out.(metav1.Object).GetManagedFields()[0].FieldsV1.String())
	// Output: {"f:spec":{"f:note":{}}}
}

// This FieldManager uses types of Tenure and filters of structured-merge-diff v4.
func ExampleFromTypes() {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	filters, err := smdv4.FromSets(map[v4fieldpath.APIVersion]*v4fieldpath.Set{
		"apps/v1": v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("status")),
	})
	if err != nil {
		panic(err)
	}
	c := converts{}
	m, err := apimachinery.NewDefaultFieldManager(
		apimachinery.FromTypes(openapi.Builtin()), c, &custom{}, &custom{}, kind, kind.GroupVersion(), "", nil,
		func(o *fieldmanager.Options) { o.ResetFields = filters },
		func(o *fieldmanager.Options) { o.Errors = func(obj runtime.Object, err error) { fmt.Println(err) } })
	if err != nil {
		panic(err)
	}
	updated := parse(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
		"spec": {"replicas": 1}, "status": {"replicas": 1}}`)
	m.UpdateNoErrors(parse(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}`), updated, "me")
	fmt.Println(updated.GetManagedFields()[0].FieldsV1.String())
	// Output: {"f:spec":{".":{},"f:replicas":{}}}
}

func ExampleExtractInto() {
	obj := parse(`{"apiVersion": "example.dev/v1", "kind": "Widget",
		"metadata": {"name": "w", "managedFields": [{"manager": "me", "operation": "Apply", "apiVersion": "example.dev/v1",
			"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:note": {}}}}]},
		"spec": {"note": "mine", "color": "somebody else's"}}`)
	var schemas map[string]*spec.Schema
	if err := json.Unmarshal([]byte(models), &schemas); err != nil {
		panic(err)
	}
	widgets, err := schemaconv.ToSchemaFromOpenAPI(schemas, false)
	if err != nil {
		panic(err)
	}
	parser := smdtyped.Parser{Schema: smdschema.Schema{Types: widgets.Types}}
	var mine struct {
		Kind string         `json:"kind"`
		Spec map[string]any `json:"spec"`
	}
	if err := apimachinery.ExtractInto(obj, parser.Type("v1"), "me", &mine, ""); err != nil {
		panic(err)
	}
	fmt.Println(mine.Kind, mine.Spec)
	// Output: Widget map[note:mine]
}

func ExampleNewScaleHandler() {
	fields := &metav1.FieldsV1{}
	if err := fields.UnmarshalJSON([]byte(`{"f:spec":{"f:replicas":{}}}`)); err != nil {
		panic(err)
	}
	parent := []metav1.ManagedFieldsEntry{{
		Manager: "me", Operation: "Apply", APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: fields,
	}}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	mappings := apimachinery.ResourcePathMappings{"apps/v1": smd.MakePathOrDie("spec", "replicas")}
	h := apimachinery.NewScaleHandler(parent, apps, mappings)
	scale, err := h.ToSubresource()
	if err != nil {
		panic(err)
	}
	fmt.Println(scale[0].APIVersion, scale[0].FieldsV1.String())
	// Output: autoscaling/v1 {"f:spec":{"f:replicas":{}}}
}

func ExampleValidateManagedFields() {
	err := apimachinery.ValidateManagedFields([]metav1.ManagedFieldsEntry{{Manager: "me", Operation: "Patch"}})
	fmt.Println(err)
	// Output: managedFields[0] of manager "me": operation must be Apply or Update, got "Patch"
}
