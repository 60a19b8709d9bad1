package writetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
)

// Widget is an object in the form that API servers use, a Go struct.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec is the spec of a Widget.
type WidgetSpec struct {
	Text   string            `json:"text,omitempty"`
	Count  *int64            `json:"count,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Args   []string          `json:"args,omitempty"`
	Ports  []WidgetPort      `json:"ports,omitempty"`
	Ratio  *float64          `json:"ratio,omitempty"`
}

// WidgetPort is an item of a keyed list.
type WidgetPort struct {
	Port int64  `json:"port"`
	Name string `json:"name,omitempty"`
}

// DeepCopyObject returns a copy.
func (w *Widget) DeepCopyObject() runtime.Object {
	out := &Widget{}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// Counted is a Widget with a number that may not fit into JSON's integers.
type Counted struct {
	Widget `json:",inline"`
	Large  uint64 `json:"large,omitempty"`
}

// DeepCopyObject returns a copy.
func (c *Counted) DeepCopyObject() runtime.Object {
	out := *c
	out.Widget = *c.Widget.DeepCopyObject().(*Widget)
	return &out
}

// WidgetKind is the kind of Widgets, at v1.
var WidgetKind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"}

// OneType returns the same type for every kind at the versions v1 and v2.
type OneType struct{ Of *typed.Type }

// Type returns o.Of.
func (o OneType) Type(kind schema.GroupVersionKind) (*typed.Type, error) {
	if kind.Version != "v1" && kind.Version != "v2" {
		return nil, runtime.NewNotRegisteredErrForKind("test", kind)
	}
	return o.Of, nil
}

// StructOf returns the type of a struct.
func StructOf(fields map[string]*typed.Type) *typed.Type {
	declared := map[string]typed.Field{}
	for name, t := range fields {
		declared[name] = typed.Field{Type: t}
	}
	return &typed.Type{Map: typed.NewMap(declared, nil)}
}

// ObjectType returns the type of an object with a spec and status of a type.
func ObjectType(spec *typed.Type) OneType {
	text := &typed.Type{Scalar: typed.String}
	return OneType{StructOf(map[string]*typed.Type{
		"apiVersion": text, "kind": text, "metadata": typed.Deduced(), "spec": spec, "status": spec,
	})}
}

// WidgetTypes returns the type of Widgets.
func WidgetTypes() OneType {
	text, number := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	return ObjectType(StructOf(map[string]*typed.Type{
		"text": text, "count": number, "ratio": number,
		"labels": {Map: typed.NewMap(nil, text)},
		"args":   {List: typed.AtomicList(text)},
		"ports":  {List: typed.KeyedList(StructOf(map[string]*typed.Type{"port": number, "name": text}), "port")},
	}))
}

// WidgetManager returns a FieldManager for Widgets at a version.
func WidgetManager(t testing.TB, version string, options ...func(*fieldmanager.Options)) *fieldmanager.FieldManager {
	t.Helper()
	base := fieldmanager.Options{Clock: func() time.Time { return Start }}
	return newManager(t, WidgetKind.GroupKind().WithVersion(version), WidgetTypes(), base, options)
}

// NewWidget returns a Widget at v1.
func NewWidget(spec WidgetSpec) *Widget {
	w := &Widget{Spec: spec}
	w.SetGroupVersionKind(WidgetKind)
	w.Name = "x"
	return w
}

// AsTree returns a Go struct as an unstructured object.
func AsTree(t testing.TB, obj runtime.Object) *unstructured.Unstructured {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: tree}
}

// AsTreeWith is AsTree with a value for a field of the spec.
func AsTreeWith(t *testing.T, w *Widget, field string, v any) *unstructured.Unstructured {
	u := AsTree(t, w)
	require.NoError(t, unstructured.SetNestedField(u.Object, v, "spec", field))
	return u
}
