package builtin

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// An Opener opens the storages of resources.
type Opener struct {
	// Open opens the storage of a resource.
	Open func(config *storagebackend.ConfigForResource, prefix string, newFunc, newListFunc func() runtime.Object) (
		storage.Interface, factory.DestroyFunc, error)
	// GarbageCollection is true if controllers remove the finalizers that deletions with a propagation policy set.
	GarbageCollection bool
}

// RESTOptions returns the options of a storage that encodes its objects with codec.
func (open Opener) RESTOptions(resource schema.GroupResource, codec runtime.Codec) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{
			Config: storagebackend.Config{Codec: codec}, GroupResource: resource,
		},
		ResourcePrefix:          resources.PrefixOf(resource),
		EnableGarbageCollection: open.GarbageCollection, DeleteCollectionWorkers: 1,
		Decorator: func(config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
			newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return open.Open(config, prefix, newFunc, newListFunc)
		},
	}
}

// A group has the data that the storages and scopes of an API group share.
type group struct {
	scheme    *runtime.Scheme
	open      Opener
	defaulter runtime.ObjectDefaulter
}

// defaulter sets the defaults of a scheme, then calls a hook.
type defaulter struct {
	scheme *runtime.Scheme
	hook   func(runtime.Object)
}

func (d defaulter) Default(obj runtime.Object) {
	d.scheme.Default(obj)
	if d.hook != nil {
		d.hook(obj)
	}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g group) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	kinds, _, err := g.scheme.ObjectKinds(example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	versions := g.scheme.PrioritizedVersionsForGroup(resource.Group)
	if len(versions) == 0 {
		return generic.RESTOptions{}, fmt.Errorf("%s: no version of group %q", resource, resource.Group)
	}
	stored := versions[0]
	for _, v := range versions { // the first version that has the kind
		if g.scheme.Recognizes(v.WithKind(kinds[0].Kind)) {
			stored = v
			break
		}
	}
	hub := schema.GroupVersion{Group: resource.Group, Version: runtime.APIVersionInternal}
	return g.open.RESTOptions(resource, g.codec(stored, hub)), nil
}

// codec returns the codec of stored objects. It decodes them to internal objects.
func (g group) codec(stored, hub schema.GroupVersion) runtime.Codec {
	return StorageCodec(g.scheme, g.defaulter, stored, hub)
}

// StorageCodec returns the codec of objects with one version in the storage and another version in memory. As in
// kube-apiserver, CustomResourceDefinitions are stored as JSON, and all other objects as protobuf, which does not
// distinguish an empty list from a missing list.
func StorageCodec(
	scheme *runtime.Scheme, defaults runtime.ObjectDefaulter, stored, memory schema.GroupVersion,
) runtime.Codec {
	plain := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{})
	var encoder runtime.Encoder = plain
	var decoder runtime.Decoder = plain
	if stored.Group != apiextensions.GroupName {
		s := protobuf.NewSerializer(scheme, scheme)
		encoder, decoder = s, s
	}
	return versioning.NewCodec(encoder, decoder, runtime.UnsafeObjectConvertor(scheme), scheme, scheme, defaults, stored,
		memory, "tenure")
}

// codecs are the codecs of a scheme, but they set defaults with the group's defaulter.
type codecs struct {
	serializer.CodecFactory
	group group
}

func (c codecs) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return versioning.NewCodec(nil, decoder, runtime.UnsafeObjectConvertor(c.group.scheme), c.group.scheme, c.group.scheme,
		c.group.defaulter, nil, gv, "tenure")
}

// DefinitionScheme has the kinds of apiextensions.k8s.io. It equals the scheme in package apiserver of
// k8s.io/apiextensions-apiserver. That package is not imported, because it has many more dependencies.
var DefinitionScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{}, &metav1.WatchEvent{},
		&metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
})

// Codecs are the codecs of kube-apiserver's scheme.
var Codecs = sync.OnceValue(func() serializer.CodecFactory { return newCodecs(legacyscheme.Scheme) })

// SchemeOf returns the scheme that has the kinds of a group.
func SchemeOf(group string) *runtime.Scheme {
	switch group {
	case apiextensions.GroupName:
		return DefinitionScheme()
	case apiregistration.GroupName:
		return aggregatorscheme.Scheme
	}
	return legacyscheme.Scheme
}
