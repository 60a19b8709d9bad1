package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
)

// setDefaults sets the defaults of an object of a built-in kind.
func setDefaults(obj runtime.Object) {
	switch o := obj.(type) {
	case *apiregistrationv1.APIService:
		if o.Spec.Service != nil {
			setPointer(&o.Spec.Service.Port, 443)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(o)
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, templateGeneration(o))
		defaults.Set(obj)
	default:
		defaults.Set(obj)
	}
}

// setDefault sets *p to value if *p is the zero value.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// setPointer sets *p to a pointer to value if *p is nil.
func setPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
