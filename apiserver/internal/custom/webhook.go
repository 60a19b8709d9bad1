package custom

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/webhooks"
)

// Webhooks call conversion webhooks with the packages of kube-apiserver, so that errors are
// the same. They are safe for concurrent use.
type Webhooks struct {
	factory func() (*conversion.CRConverterFactory, error)
}

// NewWebhooks returns webhooks.
func NewWebhooks(limits webhooks.Limits, services webhooks.Services) *Webhooks {
	return &Webhooks{sync.OnceValues(func() (*conversion.CRConverterFactory, error) {
		return conversion.NewCRConverterFactory(services, limits.Wrap)
	})}
}

// convert converts u to a version by the conversion webhook of crd.
func (w *Webhooks) convert(
	crd *apiextensionsv1.CustomResourceDefinition, u *unstructured.Unstructured, to schema.GroupVersion,
) (*unstructured.Unstructured, error) {
	factory, err := w.factory()
	if err != nil {
		return nil, err
	}
	_, unsafe, err := factory.NewConverter(crd) // it only sends the objects
	if err != nil {
		return nil, err
	}
	out, err := unsafe.ConvertToVersion(u, to)
	if err != nil {
		return nil, err
	}
	converted, ok := out.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("conversion webhook for %s: expected an *unstructured.Unstructured, got a %T",
			u.GroupVersionKind(), out)
	}
	return converted, nil
}
