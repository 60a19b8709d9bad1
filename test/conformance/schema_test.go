package conformance_test

import (
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed"
)

// texts are the JSON values of Go types that encode and decode themselves.
var texts = map[reflect.Type][]any{
	reflect.TypeFor[metav1.Time]():        {"2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z"},
	reflect.TypeFor[metav1.MicroTime]():   {"2026-01-01T12:00:00.000001Z", "2026-01-01T12:00:00.000002Z"},
	reflect.TypeFor[metav1.Duration]():    {"0s", "1s", "1m0s"},
	reflect.TypeFor[resource.Quantity]():  {"0", "1", "500m", "1Gi"},
	reflect.TypeFor[intstr.IntOrString](): {int64(0), int64(80), "http", "50%"},
	reflect.TypeFor[[]byte]():             {"", "YQ==", "Yg=="},
}

// schemaFor returns a schema from which a generator can make values of a Go type: the names and types of fields come
// from the Go type, the topology from t. It cuts off recursive types at depth.
func schemaFor(goType reflect.Type, t *typed.Type, depth int) (s spec.Schema, ok bool) {
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	if values, ok := texts[goType]; ok {
		return spec.Schema{SchemaProps: spec.SchemaProps{Enum: values}}, true
	}
	extend := func(name string, v any) { s.VendorExtensible.AddExtension(name, v) }
	kind := func(name string) { s.Type = spec.StringOrArray{name} }
	switch goType.Kind() {
	case reflect.Bool:
		kind("boolean")
	case reflect.String:
		kind("string")
	case reflect.Slice:
		if t.List == nil || depth == 0 {
			return s, false
		}
		item, ok := schemaFor(goType.Elem(), t.List.Elem(), depth-1)
		if !ok {
			return s, false
		}
		kind("array")
		listType := "map"
		if t.List.IsAtomic() {
			listType = "atomic"
		} else if t.List.IsSet() {
			listType = "set"
		}
		extend("x-kubernetes-list-type", listType)
		var keys []any
		for key := range t.List.Keys() {
			keys = append(keys, key)
			field := item.Properties[key]
			item.Required = append(item.Required, key)
			field.MinLength = new(int64(1)) // what is empty is omitted
			item.Properties[key] = field
		}
		extend("x-kubernetes-list-map-keys", keys)
		s.Items = &spec.SchemaOrArray{Schema: &item}
	case reflect.Map:
		if t.Map == nil || t.Map.Elem() == nil {
			return s, false
		}
		elem, ok := schemaFor(goType.Elem(), t.Map.Elem(), depth-1)
		if !ok {
			return s, false
		}
		kind("object")
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &elem}
	case reflect.Struct:
		if t.Map == nil || depth == 0 || reflect.PointerTo(goType).Implements(reflect.TypeFor[runtime.Unstructured]()) {
			return s, false
		}
		kind("object")
		s.Properties = map[string]spec.Schema{}
		addFields(&s, goType, t, depth)
	default:
		if goType.Kind() < reflect.Int || goType.Kind() > reflect.Uint64 {
			return s, false
		}
		kind("integer")
	}
	return s, true
}

func addFields(s *spec.Schema, goType reflect.Type, t *typed.Type, depth int) {
	for field := range goType.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && slices.Contains(strings.Split(options, ","), "inline") {
			addFields(s, field.Type, t, depth)
			continue
		}
		declared := t.Map.Field(name)
		if declared.Type == nil {
			continue
		}
		if sub, ok := schemaFor(field.Type, declared.Type, depth-1); ok {
			sub.Default = declared.Default
			s.Properties[name] = sub
		}
	}
}

// scheme has the types of k8s.io/api: types for which client-go has clients, and others.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, admissionv1.AddToScheme, admissionv1beta1.AddToScheme, apidiscoveryv2.AddToScheme,
		imagepolicyv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}()
