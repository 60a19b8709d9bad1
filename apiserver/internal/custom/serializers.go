package custom

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// serializers are the serializers of unstructured objects: all but protobuf, which needs Go
// types.
var serializers = sync.OnceValue(func() []runtime.SerializerInfo {
	creater, typer := creater{}, newTyper()
	with := func(o json.SerializerOptions) *json.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, creater, typer, o)
	}
	return []runtime.SerializerInfo{
		{
			MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer: with(json.SerializerOptions{}), PrettySerializer: with(json.SerializerOptions{Pretty: true}),
			StrictSerializer: with(json.SerializerOptions{Strict: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: with(json.SerializerOptions{}),
				Framer: json.Framer},
		},
		{
			MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer: with(json.SerializerOptions{Yaml: true}), StrictSerializer: with(json.SerializerOptions{Yaml: true,
				Strict: true}),
		},
		cbor.NewSerializerInfo(creater, typer),
	}
})

// creater creates unstructured objects.
type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// typer returns the kinds of unstructured objects from their content, and those of the
// response types of meta/v1.
type typer struct {
	runtime.ObjectTyper
	meta *runtime.Scheme
}

func newTyper() typer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return typer{crdserverscheme.NewUnstructuredObjectTyper(), scheme}
}

func (t typer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, ok := obj.(runtime.Unstructured); ok {
		return t.ObjectTyper.ObjectKinds(obj)
	}
	return t.meta.ObjectKinds(obj)
}
