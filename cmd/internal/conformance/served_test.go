package conformance

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// newShapes starts a server with a definition that has every topology.
func newShapes(t *testing.T) *server {
	s := newServer(t)
	data, err := os.ReadFile("testdata/definitions/topologies.yaml")
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(data, &crd.Object))
	client, err := dynamic.NewForConfig(s.config)
	require.NoError(t, err)
	definitions := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
	require.NoError(t, err)
	replayer := recorded.OfClient(must(rest.HTTPClientFor(s.config)), s.config.Host)
	require.NoError(t, recorded.Await(t.Context(), "not served", func() (bool, error) {
		document, err := replayer.Get("/openapi/v3/apis/topology.example.dev/v1")
		return err == nil && strings.Contains(string(document), "Shape"), nil
	}))
	return s
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// served returns the output of RunServed.
func (s *server) served(t *testing.T, through func(http.RoundTripper) http.RoundTripper, names ...string) (
	out string, failed bool) {
	t.Helper()
	config := rest.CopyConfig(s.config)
	if through != nil {
		config.Wrap(through)
	}
	d, err := RunServed(t.Context(), config, ServedOptions{Names: names}, DefinitionsOptions{Seed: 1, Count: 12, Parallel: 1})
	require.NoError(t, err)
	var text strings.Builder
	failed, err = d.Write(&text)
	require.NoError(t, err)
	return text.String(), failed
}

// TestServed: a server with upstream's field management agrees, and all created objects are deleted.
func TestServed(t *testing.T) {
	s := newShapes(t)
	before := s.left(t)
	out, failed := s.served(t, nil, "topology.example.dev", "configmaps.")
	require.False(t, failed, out)
	require.Contains(t, out, "shapes.topology.example.dev")
	require.Equal(t, before, s.left(t))

	out, failed = s.served(t, nil, "batch", "priorityclasses.scheduling.k8s.io", "networking.k8s.io")
	require.False(t, failed, out)
	require.Contains(t, out, "skipped jobs.batch: every write was refused, most of them by 422 ")
	require.Contains(t, out, "skipped ingressclasses.networking.k8s.io: it is cluster-scoped: name the resource to include it")
	require.Contains(t, out, "\npriorityclasses.scheduling.k8s.io")
}

// TestServedFaults adds faults to a server. Each must be found, with a short history.
func TestServedFaults(t *testing.T) {
	isApply := func(q *http.Request) bool { return q.Header.Get("Content-Type") == string(types.ApplyPatchType) }
	s := newShapes(t)
	for name, f := range map[string]fault{
		"conflicts are ignored": {request: func(q *http.Request, body []byte) []byte {
			if isApply(q) {
				query(q, func(v map[string][]string) { v["force"] = []string{"true"} })
			}
			return body
		}},
		"an entry of an apply is dropped": {response: func(q *faulty) {
			if q.isApply {
				q.without(func(e map[string]any) bool { return e["manager"] == q.manager && e["operation"] == "Apply" })
			}
		}},
		"a field of an update is not tracked": {response: func(q *faulty) {
			if !q.isApply {
				q.without(func(e map[string]any) bool { return e["manager"] == q.manager && e["operation"] == "Update" })
			}
		}},
		"a field is dropped": {response: func(q *faulty) {
			if spec, ok := q.object["spec"].(map[string]any); ok && q.isApply {
				clear(spec)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out, failed := s.served(t, f.through, "topology.example.dev")
			require.True(t, failed, out)
			require.LessOrEqual(t, strings.Count(out[strings.Index(out, "differs, seed"):], " by \""), 4, "%s", out)
		})
	}
}

// TestServedErrors: missing resources of a server are reported first.
func TestServedErrors(t *testing.T) {
	s := newServer(t)
	gone := func(path string) func(http.RoundTripper) http.RoundTripper {
		return func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(q *http.Request) (*http.Response, error) {
				if strings.HasPrefix(q.URL.Path, path) {
					q = q.Clone(q.Context())
					q.URL.Path = "/apis/gone.example.dev/v1/things"
				}
				return next.RoundTrip(q)
			})
		}
	}
	for _, row := range []struct{ name, path, resource, want string }{
		{"no group", "/none", "nothing.example.dev", "nothing.example.dev: the server has no such API group"},
		{"no resource", "/none", "nothings.apps", "nothings.apps: the server has no such resource"},
		{"no OpenAPI", "/openapi/v3", "apps", "apps: the server publishes no OpenAPI v3: "},
		{"no namespaces", "/api/v1/namespaces", "apps", "the server serves no namespaces"},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := rest.CopyConfig(s.config)
			config.Wrap(gone(row.path))
			_, err := RunServed(t.Context(), config, ServedOptions{Names: []string{row.resource}}, DefinitionsOptions{})
			require.ErrorContains(t, err, row.want)
		})
	}
}
