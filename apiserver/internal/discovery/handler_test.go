package discovery_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/discovery"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// widgets returns a custom resource as a definition defines it.
func widgets(version string) *resources.Resource {
	r := &resources.Resource{
		Group: "example.dev", Version: version, Plural: "widgets", Singular: "widget", Kind: "Widget", Custom: true,
		Namespaced: true,
		Verbs:      []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
		Stored:     schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"},
	}
	r.Subresources = []resources.Subresource{{Name: "status", Kind: r.GVK(), Verbs: []string{"get", "patch", "update"}}}
	return r
}

func withWidgets() []resources.Group {
	return append(builtin.Groups(builtin.Options{}), resources.Group{Name: "example.dev", Versions: []resources.Version{
		{Name: "v1", Resources: []*resources.Resource{widgets("v1")}},
		{Name: "v1beta1", Resources: []*resources.Resource{widgets("v1beta1")}},
	}})
}

func serve(tables *resources.Current) http.Handler {
	mux := http.NewServeMux()
	discovery.New(tables, []string{"/version"}).Register(mux)
	return mux
}

func ask(h http.Handler, method, path string, headers map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	h := serve(current(resources.NewTable(withWidgets(), 1)))
	tests := map[string]struct {
		method, path, accept string
		code                 int
		contentType, has     string
		why                  string
	}{
		"group of a definition": {path: "/apis/example.dev", code: 200,
			has: `"preferredVersion":{"groupVersion":"example.dev/v1"`, why: "the first version is preferred"},
		"slash behind": {path: "/apis/example.dev/", code: 200, has: `"kind":"APIGroup"`,
			why: "clients join paths carelessly"},
		"resources of a definition": {path: "/apis/example.dev/v1beta1", code: 200, has: `"name":"widgets/status"`,
			why: "subresources stand behind their resource"},
		"storage version": {path: "/apis/example.dev/v1beta1", code: 200, has: `"storageVersionHash":"`,
			why: "clients notice a change of the stored version"},
		"all paths": {path: "/", code: 200, has: `"/apis/example.dev/v1beta1"`,
			why: "the root lists what else there is"},
		"other paths": {path: "/", code: 200, has: `"/version"`, why: "the root lists what others serve"},
		"no such group": {path: "/apis/nope", code: 404, has: "404 page not found",
			why: "a group that nobody defines"},
		"no such version": {path: "/apis/apps/v9", code: 404, has: "404 page not found",
			why: "a version that nobody defines"},
		"no such core version": {path: "/api/v2", code: 404, has: "404 page not found",
			why: "the core group has one version"},
		"too long": {path: "/api/v1/x/y", code: 404, has: "404 page not found",
			why: "what is longer is no discovery"},
		"method": {method: "POST", path: "/apis", code: 405, has: "does not allow this method",
			why: "discovery is read"},
		"nothing acceptable": {path: "/apis", accept: "text/html", code: 406, has: "Available representations",
			why: "the client reads none of them"},
		"yaml": {path: "/apis/apps", accept: "application/yaml", code: 200,
			contentType: "application/yaml", has: "kind: APIGroup\n", why: "for people"},
		"aggregated": {path: "/apis", accept: aggregated, code: 200, contentType: aggregated,
			has: `"resource":"widgets"`, why: "one request for all"},
		"aggregated names kinds": {path: "/apis", accept: aggregated, code: 200, contentType: aggregated,
			has: `"responseKind":{"group":"example.dev","version":"v1beta1","kind":"Widget"}`,
			why: "custom resources name their kind in full"},
		"an older shape first": {path: "/apis",
			accept: "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", code: 200,
			contentType: "application/json", has: `"kind":"APIGroupList"`,
			why: "older clients fall back to what they accept as well"},
		"aggregated of one group": {path: "/apis/apps", accept: aggregated, code: 406,
			has: "only the following media types are accepted", why: "only whole lists are aggregated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.method == "" {
				test.method = "GET"
			}
			headers := map[string]string{}
			if test.accept != "" {
				headers["Accept"] = test.accept
			}
			w := ask(h, test.method, test.path, headers)
			require.Equal(t, test.code, w.Code, test.why)
			require.Contains(t, w.Body.String(), test.has, test.why)
			if test.contentType != "" {
				require.Equal(t, test.contentType, w.Header().Get("Content-Type"), test.why)
			}
		})
	}
}

// TestChange checks that a new table takes effect at once, and that the hash with which clients cache documents
// changes only with a new table.
func TestChange(t *testing.T) {
	tables := current(resources.NewTable(builtin.Groups(builtin.Options{}), 1))
	h := serve(tables)
	before := ask(h, "GET", "/apis", map[string]string{"Accept": aggregated})
	require.NotContains(t, before.Body.String(), "widgets")
	etag := before.Header().Get("ETag")
	again := ask(h, "GET", "/apis", map[string]string{"Accept": aggregated, "If-None-Match": etag})
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, again.Body.String())

	tables.Replace(resources.NewTable(withWidgets(), 2))
	after := ask(h, "GET", "/apis", map[string]string{"Accept": aggregated, "If-None-Match": etag})
	require.Equal(t, http.StatusOK, after.Code)
	require.Contains(t, after.Body.String(), "widgets")
	require.NotEqual(t, etag, after.Header().Get("ETag"))
	require.Equal(t, 200, ask(h, "GET", "/apis/example.dev/v1", nil).Code)

	tables.Replace(resources.NewTable(builtin.Groups(builtin.Options{}), 3))
	require.Equal(t, etag, ask(h, "GET", "/apis", map[string]string{"Accept": aggregated}).Header().Get("ETag"))
	require.Equal(t, 404, ask(h, "GET", "/apis/example.dev/v1", nil).Code)
}

// TestRecordedHash compares the hash of the core group with a kube-apiserver's.
func TestRecordedHash(t *testing.T) {
	data, err := os.ReadFile("../../testdata/rest/discovery-health.json")
	require.NoError(t, err)
	var story struct {
		Exchanges []struct {
			Path          string            `json:"path"`
			AnswerHeaders map[string]string `json:"answerHeaders"`
		} `json:"exchanges"`
	}
	require.NoError(t, json.Unmarshal(data, &story))
	h := serve(current(resources.NewTable(builtin.Groups(builtin.Options{}), 1)))
	compared := 0
	for _, e := range story.Exchanges {
		if etag := e.AnswerHeaders["Etag"]; e.Path == "/api" && etag != "" {
			require.Equal(t, etag, ask(h, "GET", "/api", map[string]string{"Accept": aggregated}).Header().Get("ETag"))
			compared++
		}
	}
	require.Equal(t, 1, compared)
}

// current returns a Current with a table.
func current(t *resources.Table) *resources.Current {
	tables := &resources.Current{}
	tables.Replace(t)
	return tables
}
