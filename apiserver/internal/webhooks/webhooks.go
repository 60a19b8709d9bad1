// Package webhooks has what conversion webhooks and admission webhooks share: limits of their clients, and the URLs of
// the Services that their configurations name. The package calls no webhooks: kube-apiserver's code calls them, through
// packages plugins (webhooks.go) and custom (convert.go).
package webhooks

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Limits limit calls of webhooks.
type Limits struct {
	Timeout  time.Duration // maximum duration of a call; a configuration may set a shorter timeout
	Response int64         // maximum size of a response, in bytes
}

// Wrap limits the clients that a resolver returns.
func (l Limits) Wrap(next webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
			return l.limit(next.ClientConfigFor(hostPort))
		},
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			return l.limit(next.ClientConfigForService(name, namespace, port))
		},
	}
}

func (l Limits) limit(config *rest.Config, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = l.Timeout
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundedTripper{next, l.Response} })
	return config, nil
}

// boundedTripper limits the size of webhook responses.
type boundedTripper struct {
	next http.RoundTripper
	max  int64
}

func (t *boundedTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, t.max)
	return response, nil
}

// Services resolve the Services that webhook configurations name. It implements
// webhook.ServiceResolver.
type Services struct {
	// Resolve, if not nil, is the host's resolver.
	Resolve func(namespace, name string, port int32) (*url.URL, error)
	Tables  *resources.Current
}

// ResolveEndpoint calls the host's resolver. Without a resolver, only Services of type ExternalName have a URL, because
// no cluster network leads to the Pods of other Services.
func (s Services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if s.Resolve != nil {
		return s.Resolve(namespace, name, port)
	}
	obj, err := s.Tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("services")).
		Get(context.Background(), namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	service, ok := obj.(*corev1.Service)
	if !ok {
		service = &corev1.Service{}
	}
	if service.Spec.Type != corev1.ServiceTypeExternalName || service.Spec.ExternalName == "" {
		return nil,
			fmt.Errorf("service %s/%s can't be reached without a cluster: expected a clientConfig with a url", namespace, name)
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port)))}, nil
}
