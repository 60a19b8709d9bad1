package defaults

import (
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Packages returns the functions that add the Go types of the built-in kinds to a scheme, by group version. Calling all
// of them takes milliseconds, which a program saves that handles some. They are the group versions that all supported
// versions of k8s.io/api have: not storagemigration.k8s.io/v1, whose only kind has no defaults.
func Packages() map[schema.GroupVersion]func(*runtime.Scheme) error { return packages }

var packages = map[schema.GroupVersion]func(*runtime.Scheme) error{
	admissionregistrationv1.SchemeGroupVersion: admissionregistrationv1.AddToScheme,
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
