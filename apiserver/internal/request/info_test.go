package request_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

// TestInfo checks how the factory of k8s.io/apiserver is set up, and what is not an error here.
func TestInfo(t *testing.T) {
	type info = apirequest.RequestInfo
	for _, row := range []struct {
		name, why    string
		method, path string
		want         info // without Path and Parts
	}{
		{"core group", "it is below /api", "GET", "/api/v1/namespaces/n/pods/p", info{
			IsResourceRequest: true, APIPrefix: "api", Verb: "get", APIVersion: "v1", Namespace: "n", Resource: "pods",
			Name: "p",
		}},
		{"named group", "other groups are below /apis", "PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale", info{
			IsResourceRequest: true, APIPrefix: "apis", Verb: "patch", APIGroup: "apps", APIVersion: "v1", Namespace: "n",
			Resource: "deployments", Name: "d", Subresource: "scale",
		}},
		{"watch without a resource", "the request is not found", "GET", "/api/v1/watch", info{
			IsResourceRequest: true, APIPrefix: "api", Verb: "get", APIVersion: "v1",
		}},
		{"group version", "discovery has no resource", "GET", "/apis/apps/v1", info{APIPrefix: "apis", Verb: "get"}},
		{"other path", "only /api and /apis have resources", "GET", "/healthz/a/b/c", info{Verb: "get"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := request.Info(httptest.NewRequest(row.method, row.path, nil))
			require.Equal(t, row.path, got.Path)
			got.Path, got.Parts = "", nil
			require.Equal(t, row.want, *got, row.why)
		})
	}
	require.Equal(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		request.GVR(request.Info(httptest.NewRequest("GET", "/apis/apps/v1/deployments", nil))))
}
