package conformance_test

import (
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// scheme has the types of k8s.io/api: those that client-go has clients for, and others.
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
