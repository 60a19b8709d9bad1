package custom

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// Webhooks call conversion webhooks with the packages of kube-apiserver, so that errors are
// the same. They are safe for concurrent use.
type Webhooks struct {
	factory func() (*conversion.CRConverterFactory, error)
}

// NewWebhooks returns webhooks with a timeout and a limit on the response size in bytes.
func NewWebhooks(timeout time.Duration, maxAnswer int64) *Webhooks {
	bounded := func(config *rest.Config, err error) (*rest.Config, error) {
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(config)
		config.Timeout = timeout
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundedTripper{next, maxAnswer} })
		return config, nil
	}
	resolver := func(next webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
				return bounded(next.ClientConfigFor(hostPort))
			},
			ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
				return bounded(next.ClientConfigForService(name, namespace, port))
			},
		}
	}
	return &Webhooks{sync.OnceValues(func() (*conversion.CRConverterFactory, error) {
		return conversion.NewCRConverterFactory(noServices{}, resolver)
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

// noServices rejects webhooks with a Service: there is no cluster network.
type noServices struct{}

func (noServices) ResolveEndpoint(namespace, name string, _ int32) (*url.URL, error) {
	return nil,
		fmt.Errorf("service %s/%s can't be reached without a cluster: expected a clientConfig with a url", namespace, name)
}

// boundedTripper limits the size of webhook responses.
type boundedTripper struct {
	next http.RoundTripper
	max  int64
}

func (t *boundedTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, t.max)
	}
	return answer, err
}
