package builtin

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// DefinitionScheme has the kinds of apiextensions.k8s.io, as that API server's scheme, whose package has much more.
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
