package apiserver_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestMetrics counts requests by their labels. Requests that are not served have no labels
// from the client.
func TestMetrics(t *testing.T) {
	server, err := apiserver.New(context.Background(), apiserver.Options{Token: "token"})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	ask := func(method, url, contentType, body string) string {
		r := httptest.NewRequest(method, url, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer token")
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Body.String()
	}
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}}`
	in := "/api/v1/namespaces/default/configmaps"
	ask("PATCH", in+"/m?fieldManager=a", "application/apply-patch+yaml", configMap)
	ask("PATCH", in+"/m?dryRun=All", "application/merge-patch+json", `{"data":{"a":"b"}}`)
	ask("GET", in+"/absent", "", "")
	ask("GET", in, "", "")
	ask("GET", "/api/v1/configmaps", "", "")
	ask("GET", in+"?watch=1&timeoutSeconds=0&resourceVersion=99999999", "", "")
	ask("POST", "/apis/made.up/v1/things", "", "{}")
	ask("GET", "/made/up", "", "")
	ask("BREW", "/readyz", "", "")
	ask("GET", "/readyz", "", "")
	ask("GET", "/openapi/v3/apis/apps/v1", "", "")
	text := ask("GET", "/metrics", "", "")

	tests := map[string]struct{ series, why string }{
		"apply": {`{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",` +
			`subresource="",verb="APPLY",version="v1"} 1`, "an apply is told from other patches"},
		"dry run": {`{code="200",component="apiserver",dry_run="All",group="",resource="configmaps",scope="resource",` +
			`subresource="",verb="PATCH",version="v1"} 1`, "nothing was written"},
		"not found": {`{code="404",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",` +
			`subresource="",verb="GET",version="v1"} 1`, "codes are counted apart"},
		"list": {`{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="namespace",` +
			`subresource="",verb="LIST",version="v1"} 1`, "of one namespace"},
		"list of all": {`{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="cluster",` +
			`subresource="",verb="LIST",version="v1"} 1`, "of all namespaces"},
		"made up": {`{code="404",component="apiserver",dry_run="",group="",resource="",scope="resource",` +
			`subresource="",verb="POST",version=""} 1`, "names of nothing are not kept"},
		"made-up path": {`{code="404",component="",dry_run="",group="",resource="",scope="",subresource="",verb="GET",` +
			`version=""} 1`, "nor are paths"},
		"odd method": {`{code="405",component="",dry_run="",group="",resource="",scope="",subresource="",verb="other",` +
			`version=""} 1`, "nor methods"},
		"path": {`{code="200",component="",dry_run="",group="",resource="",scope="",subresource="/readyz",` +
			`verb="GET",version=""} 1`, "paths that are served are counted by name"},
		"pattern": {`{code="200",component="",dry_run="",group="",resource="",scope="",` +
			`subresource="/openapi/v3/{path...}",verb="GET",version=""} 1`, "or by their pattern"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Contains(t, text, test.series, test.why) })
	}
	require.NotContains(t, text, "made")
	require.NotContains(t, text, "BREW")
}
