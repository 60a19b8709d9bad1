package controllerruntime

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is answered and sent is tested against a whole server, too, in test/e2e.

func TestNewDryRunsErrors(t *testing.T) {
	_, err := NewDryRuns(WrapOptions{Config: &rest.Config{}})
	require.ErrorContains(t, err, "expected Config and Cache")
	options := WrapOptions{
		Config: &rest.Config{}, Cache: clusterCache{}, Mapper: meta.NewDefaultRESTMapper(nil),
		Metrics: prometheus.NewRegistry(),
	}
	_, err = NewDryRuns(options)
	require.NoError(t, err)
	_, err = NewDryRuns(options)
	require.ErrorAs(t, err, &prometheus.AlreadyRegisteredError{})
	options.Config = &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "none")}}
	_, err = NewDryRuns(options)
	require.ErrorContains(t, err, "none: no such file")
	options.Mapper = nil
	_, err = NewDryRuns(options)
	require.ErrorContains(t, err, "none: no such file")
}

func TestParseTarget(t *testing.T) {
	for path, want := range map[string]target{
		"/api/v1/namespaces/a/pods/b":          {core("pods"), "a", "b", ""},
		"/api/v1/namespaces/a/pods/b/status":   {core("pods"), "a", "b", "status"},
		"/api/v1/namespaces/a/pods":            {core("pods"), "a", "", ""},
		"/api/v1/namespaces/a":                 {core("namespaces"), "", "a", ""},
		"/api/v1/namespaces/a/status":          {core("namespaces"), "", "a", "status"},
		"/api/v1/namespaces/a/finalize":        {core("namespaces"), "", "a", "finalize"},
		"/api/v1/nodes/a/proxy/b/c":            {core("nodes"), "", "a", "proxy/b/c"},
		"/apis/apps/v1/namespaces/a/status/b":  {apps("status"), "a", "b", ""},
		"/apis/apps/v1/namespaces/a/pods/b/":   {apps("pods"), "a", "b", ""},
		"/apis/apps/v1/deployments/b/status/c": {apps("deployments"), "", "b", "status/c"},
	} {
		got, ok := parseTarget(path)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{"/", "/api", "/api/v1", "/apis/apps/v1", "/version", "/openapi/v3/apis/apps/v1"} {
		_, ok := parseTarget(path)
		require.False(t, ok, path)
	}
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

func TestShadowIsSpread(t *testing.T) {
	d := &DryRuns{options: WrapOptions{Shadow: 0.25}}
	sampled := 0
	for range 100 {
		if d.isSampled() {
			sampled++
		}
	}
	require.Equal(t, 25, sampled)
}

func TestIsKnown(t *testing.T) {
	known := func() request {
		intent, err := treeFrom([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`))
		require.NoError(t, err)
		return request{
			kind: intent.GroupVersionKind(), key: client.ObjectKeyFromObject(intent), intent: intent, manager: "me",
			dryRun: []string{"All"},
		}
	}
	require.True(t, known().isKnown())
	for name, change := range map[string]func(*request){
		"no manager":           func(r *request) { r.manager = "" },
		"a scale":              func(r *request) { r.subresource = "scale" },
		"another dry run":      func(r *request) { r.dryRun = []string{"None"} },
		"another name":         func(r *request) { r.key.Name = "b" },
		"another namespace":    func(r *request) { r.key.Namespace = "c" },
		"another kind":         func(r *request) { r.kind.Kind = "Secret" },
		"a precondition":       func(r *request) { r.intent.SetResourceVersion("1") },
		"an unreadable intent": func(r *request) { r.intent = &unstructured.Unstructured{} },
	} {
		r := known()
		change(&r)
		require.False(t, r.isKnown(), name)
	}
}

// kindsClient is a client that knows kinds.
type kindsClient struct {
	client.Client
	scheme *runtime.Scheme
	mapper meta.RESTMapper
}

func (c kindsClient) Scheme() *runtime.Scheme     { return c.scheme }
func (c kindsClient) RESTMapper() meta.RESTMapper { return c.mapper }

var errNoObject = errors.New("no object")

func (kindsClient) GroupVersionKindFor(runtime.Object) (kind schema.GroupVersionKind, err error) {
	return kind, errNoObject
}

func (kindsClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errNoObject
}

// TestWrapClient takes what the options lack from the client.
func TestWrapClient(t *testing.T) {
	c := kindsClient{scheme: runtime.NewScheme(), mapper: meta.NewDefaultRESTMapper(nil)}
	own := kindsClient{scheme: runtime.NewScheme(), mapper: meta.NewDefaultRESTMapper(nil)}
	for _, row := range []struct {
		given WrapOptions
		want  kindsClient
	}{
		{WrapOptions{}, c},
		{WrapOptions{Scheme: own.scheme, Mapper: own.mapper}, own},
	} {
		row.given.Config, row.given.Cache = &rest.Config{}, clusterCache{}
		wrapped, err := WrapClient(c, row.given)
		require.NoError(t, err)
		options := wrapped.(*wrappedClient).dryRuns.options
		require.Same(t, row.want.scheme, options.Scheme)
		require.Same(t, row.want.mapper, options.Mapper)
	}
	_, err := WrapClient(c, WrapOptions{})
	require.ErrorContains(t, err, "expected Config and Cache")
	wrapped := newDryRuns(WrapOptions{}, nil).Client(c)
	require.ErrorIs(t, wrapped.Create(t.Context(), nil), errNoObject, "what the client says")
}
