package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// newCodecs returns the codecs of a scheme for all served media types.
func newCodecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON(),
		serializer.WithStreamingCollectionEncodingToProtobuf())
}

// endpoint returns the endpoint of a resource or subresource, as the installer of k8s.io/apiserver makes it.
func (o *opener) endpoint(
	info genericapiserver.APIGroupInfo, r *resources.Resource, subresource string, storage rest.Storage,
) (*resources.Endpoint, error) {
	scheme := info.Scheme
	kind, err := endpoints.GetResourceKind(r.GroupVersion(), storage, scheme)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", r.GroupResource(), subresource, err)
	}
	tables, _ := storage.(rest.TableConvertor) // nil for storages without a Table
	accepts, _ := storage.(rest.GroupVersionAcceptor)
	defaults := defaulter{scheme, o.options.Default}
	serializers := Codecs()
	if scheme != legacyscheme.Scheme {
		serializers = newCodecs(scheme)
	}
	scope := &handlers.RequestScope{
		Namer:          handlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor()), ClusterScoped: !r.Namespaced},
		Serializer:     codecs{serializers, group{scheme: scheme, defaulter: defaults}},
		ParameterCodec: info.ParameterCodec,
		Creater:        scheme, Convertor: scheme, Defaulter: defaults, Typer: scheme,
		UnsafeConvertor:             runtime.UnsafeObjectConvertor(scheme),
		Authorizer:                  o.options.Authorizer,
		EquivalentResourceMapper:    o.options.Tables,
		TableConvertor:              tables,
		Resource:                    r.GVR(),
		Subresource:                 subresource,
		Kind:                        kind,
		AcceptsGroupVersionDelegate: accepts,
		HubGroupVersion:             schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal},
		MetaGroupVersion:            metav1.SchemeGroupVersion,
		MaxRequestBodyBytes:         o.options.MaxBody,
	}
	return resources.NewEndpoint(storage, scope, openapi.Builtin(), o.options.Now, false)
}
