package request_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

func TestParse(t *testing.T) {
	type info = request.Info
	for _, row := range []struct {
		name, why    string
		method, path string
		want         info // Path, Parts and Resource aside
	}{
		{"named", "the usual path", "GET", "/api/v1/namespaces/n/pods/p",
			info{Verb: "get", Version: "v1", Namespace: "n", Plural: "pods", Name: "p"}},
		{"group", "groups but the core one are below /apis", "PUT", "/apis/apps/v1/namespaces/n/deployments/d",
			info{Verb: "update", Group: "apps", Version: "v1", Namespace: "n", Plural: "deployments", Name: "d"}},
		{"subresource", "what stands behind a name is a part of it", "PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale",
			info{Verb: "patch", Group: "apps", Version: "v1", Namespace: "n", Plural: "deployments", Name: "d", Subresource: "scale"}},
		{"list", "no name", "GET", "/api/v1/namespaces/n/pods", info{Verb: "list", Version: "v1", Namespace: "n", Plural: "pods"}},
		{"list of all namespaces", "no namespace", "GET", "/api/v1/pods", info{Verb: "list", Version: "v1", Plural: "pods"}},
		{"list of one", "who may read only one object may select it", "GET", "/api/v1/namespaces/n/pods?fieldSelector=metadata.name=p",
			info{Verb: "list", Version: "v1", Namespace: "n", Plural: "pods", Name: "p"}},
		{"list of a bad name", "a name with a slash names nothing", "GET", "/api/v1/namespaces/n/pods?fieldSelector=metadata.name=a/b",
			info{Verb: "list", Version: "v1", Namespace: "n", Plural: "pods"}},
		{"watch", "the query tells it from a list", "GET", "/api/v1/pods?watch=true", info{Verb: "watch", Version: "v1", Plural: "pods"}},
		{"watch with a bad query", "who may must be asked about the watch that is meant", "GET", "/api/v1/pods?watch=1&limit=x",
			info{Verb: "watch", Version: "v1", Plural: "pods"}},
		{"list with a bad query", "watch=0 is none", "GET", "/api/v1/pods?watch=0&limit=x", info{Verb: "list", Version: "v1", Plural: "pods"}},
		{"old watch", "a path of old clients", "GET", "/api/v1/watch/namespaces/n/pods/p",
			info{Verb: "watch", Version: "v1", Namespace: "n", Plural: "pods", Name: "p"}},
		{"old proxy", "a verb that is not served, never a resource called proxy", "GET", "/api/v1/proxy/namespaces/n/pods/p",
			info{Verb: "proxy", Version: "v1", Namespace: "n", Plural: "pods", Name: "p"}},
		{"namespace", "a namespace is in itself", "GET", "/api/v1/namespaces/n",
			info{Verb: "get", Version: "v1", Namespace: "n", Plural: "namespaces", Name: "n"}},
		{"status of a namespace", "not a resource called status", "PUT", "/api/v1/namespaces/n/status",
			info{Verb: "update", Version: "v1", Namespace: "n", Plural: "namespaces", Name: "n", Subresource: "status"}},
		{"collection", "a delete without a name", "DELETE", "/api/v1/namespaces/n/pods",
			info{Verb: "deletecollection", Version: "v1", Namespace: "n", Plural: "pods"}},
		{"unknown method", "nothing is asked for that could be allowed", "OPTIONS", "/api/v1/pods", info{Version: "v1", Plural: "pods"}},
		{"deep subresource", "the whole rest is the name", "GET", "/api/v1/namespaces/n/pods/p/proxy/a/b",
			info{Verb: "get", Version: "v1", Namespace: "n", Plural: "pods", Name: "p", Subresource: "proxy/a/b"}},
		{"trailing slash", "means nothing", "GET", "/api/v1/namespaces/n/pods/", info{Verb: "list", Version: "v1", Namespace: "n", Plural: "pods"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := request.Parse(httptest.NewRequest(row.method, row.path, nil))
			require.True(t, got.Resource, row.why)
			got.Path, got.Parts, got.Resource = "", nil, false
			require.Equal(t, row.want, *got, row.why)
		})
	}
}

func TestParseOtherPaths(t *testing.T) {
	for _, path := range []string{"/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v2", "//", "/apis//"} {
		require.False(t, request.Parse(httptest.NewRequest(http.MethodGet, path, nil)).Resource, path)
	}
}
