package custom

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
)

// schemas are the structural schemas of a kind, by version, and other data for decoding.
type schemas struct {
	kind       schema.GroupKind
	byVersion  map[string]*structuralschema.Structural
	defaulters map[string]*defaulter
	preserve   bool // whether to keep unknown fields
	hook       func(runtime.Object)
}

// has reports whether an object has the kind. The same codecs also decode options of requests, which have other kinds.
func (s *schemas) has(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == s.kind
}

// Default sets the defaults of the schema, and calls the host's hook.
func (s *schemas) Default(obj runtime.Object) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || !s.has(u) {
		builtin.DefinitionScheme().Default(obj)
		return
	}
	if d := s.defaulters[u.GroupVersionKind().Version]; d != nil && d.schema != nil && d.check(u.Object) == nil {
		defaulting.Default(u.Object, d.schema)
	}
	if s.hook != nil {
		s.hook(u)
	}
}

// Check returns an error if the defaults of an object are too large. Default does not set such defaults.
func (s *schemas) Check(obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok && s.has(u) {
		return s.defaulters[u.GroupVersionKind().Version].check(u.Object)
	}
	return nil
}

// coerceOptions configure coerce.
type coerceOptions struct {
	strict bool // whether to return the paths of unknown fields
	// stored drops metadata of the wrong type, so that objects that were stored under another schema can be read.
	stored bool
}

// coerce changes an object as decoding into a Go type would: it converts metadata to its type, removes unknown fields,
// and removes nulls if the schema does not allow them. It returns the paths of the unknown fields.
func (s *schemas) coerce(u *unstructured.Unstructured, o coerceOptions) ([]string, error) {
	gvk := u.GroupVersionKind()
	meta, found, unknown, err := schemaobjectmeta.GetObjectMetaWithOptions(u.Object, schemaobjectmeta.ObjectMetaOptions{
		DropMalformedFields: o.stored, ReturnUnknownFieldPaths: o.strict,
	})
	if err != nil {
		return nil, err
	}
	if s.has(u) {
		structural := s.byVersion[gvk.Version]
		if !s.preserve {
			unknown = append(unknown, pruning.PruneWithOptions(u.Object, structural, true,
				structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: o.strict})...)
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
		}
		fieldErr, more := schemaobjectmeta.CoerceWithOptions(nil, u.Object, structural, false,
			schemaobjectmeta.CoerceOptions{DropInvalidFields: o.stored, ReturnUnknownFieldPaths: o.strict})
		if fieldErr != nil {
			return nil, fieldErr
		}
		unknown = append(unknown, more...)
		if d := s.defaulters[gvk.Version]; !o.stored {
			if err := d.check(u.Object); err != nil {
				return nil, err
			}
		}
	}
	if found {
		if o.stored {
			meta.Generation = max(meta.Generation, 1)
		}
		u.SetGroupVersionKind(gvk)
		return unknown, schemaobjectmeta.SetObjectMeta(u.Object, meta)
	}
	return unknown, nil
}

// decoder coerces the objects that another decoder decodes.
type decoder struct {
	runtime.Decoder
	schemas *schemas
	options coerceOptions
}

func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (
	runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	var faults []error
	if err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			return nil, gvk, err
		}
		faults = strict.Errors()
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unknown, err := d.schemas.coerce(u, d.options)
		if err != nil {
			return nil, gvk, err
		}
		for _, path := range unknown {
			faults = append(faults, fmt.Errorf("unknown field %q", path))
		}
	}
	if len(faults) > 0 && d.options.strict {
		return obj, gvk, runtime.NewStrictDecodingError(faults)
	}
	return obj, gvk, nil
}

// coercer coerces the objects that another converter converts.
type coercer struct {
	runtime.ObjectConvertor
	schemas *schemas
}

func (c coercer) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	out, err := c.ObjectConvertor.ConvertToVersion(in, gv)
	if u, ok := out.(*unstructured.Unstructured); ok && err == nil {
		_, err = c.schemas.coerce(u, coerceOptions{})
	}
	return out, err
}

func (c coercer) Convert(in, out, context any) error {
	err := c.ObjectConvertor.Convert(in, out, context)
	if u, ok := out.(*unstructured.Unstructured); ok && err == nil {
		_, err = c.schemas.coerce(u, coerceOptions{})
	}
	return err
}

// storedCodec returns the codec of objects with one version in the storage and another version in memory.
func (s *schemas) storedCodec(converter runtime.ObjectConvertor, stored, memory schema.GroupVersion) runtime.Codec {
	json := unstructured.UnstructuredJSONScheme
	return versioning.NewCodec(json, decoder{json, s, coerceOptions{stored: true}}, coercer{converter, s}, creater{},
		crdserverscheme.NewUnstructuredObjectTyper(), s, stored, memory, "tenure-custom-stored")
}

// codecs are the codecs of requests and responses. They implement runtime.NegotiatedSerializer.
type codecs struct {
	schemas   *schemas
	converter runtime.ObjectConvertor
	media     []runtime.SerializerInfo
}

// newCodecs returns codecs. Protobuf is only for options and responses that have a Go type.
func newCodecs(s *schemas, converter runtime.ObjectConvertor, typer runtime.ObjectTyper) codecs {
	with := func(o json.SerializerOptions) *json.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, creater{}, typer, o)
	}
	plain := with(json.SerializerOptions{StreamingCollectionsEncoding: true})
	return codecs{s, converter, []runtime.SerializerInfo{
		{
			MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer: plain, PrettySerializer: with(json.SerializerOptions{Pretty: true}),
			StrictSerializer: with(json.SerializerOptions{Strict: true, StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				EncodesAsText: true, Serializer: with(json.SerializerOptions{}), Framer: json.Framer,
			},
		},
		{
			MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer:       with(json.SerializerOptions{Yaml: true}),
			StrictSerializer: with(json.SerializerOptions{Yaml: true, Strict: true}),
		},
		{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf",
			Serializer: protobuf.NewSerializerWithOptions(creater{}, typer,
				protobuf.SerializerOptions{StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: protobuf.NewRawSerializer(creater{}, typer), Framer: protobuf.LengthDelimitedFramer,
			},
		},
	}}
}

func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo { return c.media }

// standard returns the media types that custom resources support: all except protobuf.
func (c codecs) standard() (out []runtime.SerializerInfo) {
	for _, info := range c.media {
		if info.MediaType != runtime.ContentTypeProtobuf {
			out = append(out, info)
		}
	}
	return out
}

func (c codecs) EncoderForVersion(encoder runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	scheme := builtin.DefinitionScheme()
	return versioning.NewCodec(encoder, nil, c.converter, scheme, scheme, scheme, gv, nil, "tenure-custom")
}

func (c codecs) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	scheme := builtin.DefinitionScheme()
	strict := false
	if s, ok := d.(*json.Serializer); ok {
		strict = s.IsStrict()
	}
	return versioning.NewCodec(nil, decoder{d, c.schemas, coerceOptions{strict: strict}},
		runtime.UnsafeObjectConvertor(scheme), scheme, scheme, c.schemas, nil, gv, "tenure-custom")
}

// creater creates unstructured objects.
type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// typer returns the kinds of unstructured objects from their content, and the kinds of options from a scheme.
type typer struct {
	runtime.ObjectTyper
	options *runtime.Scheme
}

func newTyper(gv schema.GroupVersion) typer {
	scheme := runtime.NewScheme()
	scheme.AddUnversionedTypes(gv, &metav1.ListOptions{}, &metav1.GetOptions{}, &metav1.DeleteOptions{})
	return typer{crdserverscheme.NewUnstructuredObjectTyper(), scheme}
}

func (t typer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, ok := obj.(runtime.Unstructured); ok {
		return t.ObjectTyper.ObjectKinds(obj)
	}
	return t.options.ObjectKinds(obj)
}

func (t typer) Recognizes(gvk schema.GroupVersionKind) bool {
	return t.options.Recognizes(gvk) || t.ObjectTyper.Recognizes(gvk)
}
