package builtin

import (
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// packageOf returns the function that adds the Go types of a group version to a scheme; nil for none. It is called when
// the first object of a group version is handled: calling all of them at the start would dominate the server's start-up
// time.
func packageOf(gv schema.GroupVersion) func(*runtime.Scheme) error {
	switch gv {
	case apiextensionsv1.SchemeGroupVersion:
		return apiextensionsv1.AddToScheme
	case apiregistrationv1.SchemeGroupVersion:
		return apiregistrationv1.AddToScheme
	}
	return defaults.Packages()[gv]
}

// types holds the scheme and the serializers of one group version.
type types struct {
	scheme      *runtime.Scheme
	serializers []runtime.SerializerInfo
}

var (
	typesLock      sync.Mutex
	typesByVersion = map[schema.GroupVersion]*types{}
)

// typesOfVersion returns the Go types of a group version and Scale, the kind of scale
// subresources.
func typesOfVersion(gv schema.GroupVersion) *types {
	typesLock.Lock()
	defer typesLock.Unlock()
	if t := typesByVersion[gv]; t != nil {
		return t
	}
	t := &types{scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{packageOf(gv), autoscalingv1.AddToScheme} {
		if add != nil {
			utilruntime.Must(add(t.scheme))
		}
	}
	t.serializers = serializer.NewCodecFactory(t.scheme,
		serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes()
	typesByVersion[gv] = t
	return t
}

// Review returns the strategy of a kind that is not stored, such as SubjectAccessReview,
// Binding or Eviction.
func Review(kind schema.GroupVersionKind) (resources.Strategy, error) {
	return open(&resources.Resource{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, Options{})
}
