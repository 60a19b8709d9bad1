package apimachinery_test

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind at two versions that differ in shape, and the internal type between them:
//
//	v1                          internal     v2
//	spec.size                   Size         spec.look.size       moved into a struct
//	spec.color                  Color        spec.look.paint      and renamed
//	spec.note                   Note         spec.remark          renamed
//	spec.ports: list by name    Ports        spec.ports: map by name
//	spec.tags: set              Tags         spec.tags: set
//	spec.limits: map            Limits       spec.limits: list by key
//	spec.args: atomic list      Args         spec.args: atomic list
//	spec.selector: atomic       Selector     spec.selector: atomic

var group = "example.dev"

func gv(version string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: version}
}

func widgetKind(version string) schema.GroupVersionKind { return gv(version).WithKind("Widget") }

// Widget is the internal type. It has no JSON tags, like all internal types.
type Widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Size     *int64
	Color    *string
	Note     *string
	Ports    []Port
	Tags     []string
	Limits   map[string]string
	Args     []string
	Selector *Selector
	Ready    *int64
}

type Selector struct {
	Zone  *string  `json:"zone,omitempty"`
	Racks []string `json:"racks,omitempty"`
}

type Port struct {
	Name     string
	Number   *int64
	Protocol *string
}

// WidgetV1 is served as v1.
type WidgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV1 `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

type SpecV1 struct {
	Size     *int64            `json:"size,omitempty"`
	Color    *string           `json:"color,omitempty"`
	Note     *string           `json:"note,omitempty"`
	Ports    []PortV1          `json:"ports,omitempty"`
	Tags     []string          `json:"tags,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Selector *Selector         `json:"selector,omitempty"`
}

type PortV1 struct {
	Name     string  `json:"name"`
	Number   *int64  `json:"number,omitempty"`
	Protocol *string `json:"protocol,omitempty"`
}

type Status struct {
	Ready *int64 `json:"ready,omitempty"`
}

// WidgetV2 is served as v2.
type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV2 `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

type SpecV2 struct {
	Look     LookV2            `json:"look,omitempty"`
	Remark   *string           `json:"remark,omitempty"`
	Ports    map[string]PortV2 `json:"ports,omitempty"`
	Tags     []string          `json:"tags,omitempty"`
	Limits   []LimitV2         `json:"limits,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Selector *Selector         `json:"selector,omitempty"`
}

type LookV2 struct {
	Size  *int64  `json:"size,omitempty"`
	Paint *string `json:"paint,omitempty"`
}

type PortV2 struct {
	Number   *int64  `json:"number,omitempty"`
	Protocol *string `json:"protocol,omitempty"`
}

type LimitV2 struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// models are the schemas of both versions.
const models = `{
"meta": {"type": "object", "properties": {
  "name": {"type": "string"}, "namespace": {"type": "string"}, "uid": {"type": "string"},
  "resourceVersion": {"type": "string"}, "generation": {"type": "integer"}, "creationTimestamp": {"type": "string", "format": "date-time"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
  "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
  "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
    "items": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"},
      "uid": {"type": "string"}, "controller": {"type": "boolean"}}}},
  "managedFields": {"type": "array", "items": {}, "x-kubernetes-list-type": "atomic"}}},
"status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
"v1": {"type": "object",
  "x-kubernetes-group-version-kind": [{"group": "example.dev", "version": "v1", "kind": "Widget"}],
  "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": "#/definitions/meta"}, "status": {"$ref": "#/definitions/status"},
    "spec": {"type": "object", "properties": {
      "size": {"type": "integer"}, "color": {"type": "string"}, "note": {"type": "string"},
      "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "number": {"type": "integer"}, "protocol": {"type": "string"}}}},
      "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
      "args": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
      "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "zone": {"type": "string"}, "racks": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}}},
      "limits": {"type": "object", "additionalProperties": {"type": "string"}}}}}},
"v2": {"type": "object",
  "x-kubernetes-group-version-kind": [{"group": "example.dev", "version": "v2", "kind": "Widget"}],
  "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": "#/definitions/meta"}, "status": {"$ref": "#/definitions/status"},
    "spec": {"type": "object", "properties": {
      "look": {"type": "object", "properties": {"size": {"type": "integer"}, "paint": {"type": "string"}}},
      "remark": {"type": "string"},
      "ports": {"type": "object", "additionalProperties": {"type": "object", "properties": {"number": {"type": "integer"}, "protocol": {"type": "string"}}}},
      "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
      "args": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
      "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "zone": {"type": "string"}, "racks": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}}},
      "limits": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
        "items": {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}}}}}}
}`

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func ports(in []Port) []Port {
	out := slices.Clone(in)
	for i := range out {
		out[i].Number, out[i].Protocol = pointer(in[i].Number), pointer(in[i].Protocol)
	}
	return out
}

func (s *Selector) copy() *Selector {
	out := pointer(s)
	if s != nil {
		out.Zone, out.Racks = pointer(s.Zone), slices.Clone(s.Racks)
	}
	return out
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.ObjectMeta.DeepCopy()
	out.Size, out.Color, out.Note, out.Ready = pointer(w.Size), pointer(w.Color), pointer(w.Note), pointer(w.Ready)
	out.Ports, out.Tags, out.Limits = ports(w.Ports), slices.Clone(w.Tags), maps.Clone(w.Limits)
	out.Args, out.Selector = slices.Clone(w.Args), w.Selector.copy()
	return &out
}

func (w *WidgetV1) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.ObjectMeta.DeepCopy()
	s := &out.Spec
	s.Size, s.Color, s.Note = pointer(s.Size), pointer(s.Color), pointer(s.Note)
	s.Ports, s.Tags, s.Limits = slices.Clone(s.Ports), slices.Clone(s.Tags), maps.Clone(s.Limits)
	s.Args, s.Selector = slices.Clone(s.Args), s.Selector.copy()
	for i := range s.Ports {
		s.Ports[i].Number, s.Ports[i].Protocol = pointer(s.Ports[i].Number), pointer(s.Ports[i].Protocol)
	}
	out.Status.Ready = pointer(w.Status.Ready)
	return &out
}

func (w *WidgetV2) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.ObjectMeta.DeepCopy()
	s := &out.Spec
	s.Look.Size, s.Look.Paint, s.Remark = pointer(s.Look.Size), pointer(s.Look.Paint), pointer(s.Remark)
	s.Ports, s.Tags, s.Limits = maps.Clone(s.Ports), slices.Clone(s.Tags), slices.Clone(s.Limits)
	s.Args, s.Selector = slices.Clone(s.Args), s.Selector.copy()
	for name, p := range s.Ports {
		s.Ports[name] = PortV2{pointer(p.Number), pointer(p.Protocol)}
	}
	out.Status.Ready = pointer(w.Status.Ready)
	return &out
}

func v1ToHub(in *WidgetV1, out *Widget) {
	out.ObjectMeta, out.Ready = in.ObjectMeta, in.Status.Ready
	s := in.Spec
	out.Size, out.Color, out.Note, out.Tags, out.Limits = s.Size, s.Color, s.Note, s.Tags, s.Limits
	out.Args, out.Selector = s.Args, s.Selector
	out.Ports = nil
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, Port(p))
	}
}

func hubToV1(in *Widget, out *WidgetV1) {
	out.ObjectMeta, out.Status.Ready = in.ObjectMeta, in.Ready
	out.Spec = SpecV1{Size: in.Size, Color: in.Color, Note: in.Note, Tags: in.Tags, Limits: in.Limits,
		Args: in.Args, Selector: in.Selector}
	for _, p := range in.Ports {
		out.Spec.Ports = append(out.Spec.Ports, PortV1(p))
	}
}

func v2ToHub(in *WidgetV2, out *Widget) {
	out.ObjectMeta, out.Ready = in.ObjectMeta, in.Status.Ready
	s := in.Spec
	out.Size, out.Color, out.Note, out.Tags = s.Look.Size, s.Look.Paint, s.Remark, s.Tags
	out.Args, out.Selector = s.Args, s.Selector
	out.Ports, out.Limits = nil, nil
	for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
		out.Ports = append(out.Ports, Port{name, s.Ports[name].Number, s.Ports[name].Protocol})
	}
	for _, l := range s.Limits {
		if out.Limits == nil {
			out.Limits = map[string]string{}
		}
		out.Limits[l.Key] = l.Value
	}
}

func hubToV2(in *Widget, out *WidgetV2) {
	out.ObjectMeta, out.Status.Ready = in.ObjectMeta, in.Ready
	out.Spec = SpecV2{Look: LookV2{Size: in.Size, Paint: in.Color}, Remark: in.Note, Tags: in.Tags,
		Args: in.Args, Selector: in.Selector}
	for _, p := range in.Ports {
		if out.Spec.Ports == nil {
			out.Spec.Ports = map[string]PortV2{}
		}
		out.Spec.Ports[p.Name] = PortV2{p.Number, p.Protocol}
	}
	for _, key := range slices.Sorted(maps.Keys(in.Limits)) {
		out.Spec.Limits = append(out.Spec.Limits, LimitV2{key, in.Limits[key]})
	}
}

// converting returns a conversion function from a function that can't fail.
func converting[From, To any](f func(*From, *To)) conversion.ConversionFunc {
	return func(in, out any, _ conversion.Scope) error {
		f(in.(*From), out.(*To))
		return nil
	}
}

// newScheme returns the scheme of a server of widgets: types, conversions through the internal type, and the defaults
// of v1 and v2 (a port's protocol is TCP).
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgetKind(runtime.APIVersionInternal), &Widget{})
	s.AddKnownTypeWithName(widgetKind("v1"), &WidgetV1{})
	s.AddKnownTypeWithName(widgetKind("v2"), &WidgetV2{})
	for _, c := range []struct {
		a, b any
		f    conversion.ConversionFunc
	}{
		{(*WidgetV1)(nil), (*Widget)(nil), converting(v1ToHub)},
		{(*Widget)(nil), (*WidgetV1)(nil), converting(hubToV1)},
		{(*WidgetV2)(nil), (*Widget)(nil), converting(v2ToHub)},
		{(*Widget)(nil), (*WidgetV2)(nil), converting(hubToV2)},
	} {
		if err := s.AddConversionFunc(c.a, c.b, c.f); err != nil {
			panic(fmt.Sprint("a conversion function: ", err))
		}
	}
	tcp := "TCP"
	s.AddTypeDefaultingFunc(&WidgetV1{}, func(obj any) {
		list := obj.(*WidgetV1).Spec.Ports
		for i := range list {
			if list[i].Protocol == nil {
				list[i].Protocol = &tcp
			}
		}
	})
	s.AddTypeDefaultingFunc(&WidgetV2{}, func(obj any) {
		for name, p := range obj.(*WidgetV2).Spec.Ports {
			if p.Protocol == nil {
				p.Protocol = &tcp
				obj.(*WidgetV2).Spec.Ports[name] = p
			}
		}
	})
	return s
}
