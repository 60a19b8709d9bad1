package builtin

import (
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// packages are the functions that add Go types to a scheme, by group version. They are
// called when the first object of a group version is handled: calling all of them at the
// start would dominate the server's start-up time.
var packages = map[schema.GroupVersion]func(*runtime.Scheme) error{
	admissionregistrationv1.SchemeGroupVersion: admissionregistrationv1.AddToScheme,
	apiextensionsv1.SchemeGroupVersion:         apiextensionsv1.AddToScheme,
	apiregistrationv1.SchemeGroupVersion:       apiregistrationv1.AddToScheme,
	appsv1.SchemeGroupVersion:                  appsv1.AddToScheme,
	authenticationv1.SchemeGroupVersion:        authenticationv1.AddToScheme,
	authorizationv1.SchemeGroupVersion:         authorizationv1.AddToScheme,
	autoscalingv1.SchemeGroupVersion:           autoscalingv1.AddToScheme,
	autoscalingv2.SchemeGroupVersion:           autoscalingv2.AddToScheme,
	batchv1.SchemeGroupVersion:                 batchv1.AddToScheme,
	certificatesv1.SchemeGroupVersion:          certificatesv1.AddToScheme,
	coordinationv1.SchemeGroupVersion:          coordinationv1.AddToScheme,
	corev1.SchemeGroupVersion:                  corev1.AddToScheme,
	discoveryv1.SchemeGroupVersion:             discoveryv1.AddToScheme,
	eventsv1.SchemeGroupVersion:                eventsv1.AddToScheme,
	flowcontrolv1.SchemeGroupVersion:           flowcontrolv1.AddToScheme,
	networkingv1.SchemeGroupVersion:            networkingv1.AddToScheme,
	nodev1.SchemeGroupVersion:                  nodev1.AddToScheme,
	policyv1.SchemeGroupVersion:                policyv1.AddToScheme,
	rbacv1.SchemeGroupVersion:                  rbacv1.AddToScheme,
	resourcev1.SchemeGroupVersion:              resourcev1.AddToScheme,
	schedulingv1.SchemeGroupVersion:            schedulingv1.AddToScheme,
	storagev1.SchemeGroupVersion:               storagev1.AddToScheme,
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
	for _, add := range []func(*runtime.Scheme) error{packages[gv], autoscalingv1.AddToScheme} {
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
