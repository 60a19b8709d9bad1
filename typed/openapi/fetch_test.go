package openapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/remote"
)

// serve answers as an API server below /prefix does; anything else is not found.
func serve(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.RequestURI()]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case answer == "503":
			w.WriteHeader(http.StatusServiceUnavailable)
		case answer == "huge":
			for range remote.MaxDocument>>20 + 1 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/prefix/"
}

func discoveryOf(names ...string) string {
	out := `{"paths": {"version": {"serverRelativeURL": "/openapi/v3/version"}`
	for _, name := range names {
		out += fmt.Sprintf(`, %q: {"serverRelativeURL": "/openapi/v3/%s?hash=A"}`, name, name)
	}
	return out + `}}`
}

func modelFor(group, version, kind, typ string) string {
	return string(
		documentOf(fmt.Sprintf(
			`{"M": {"type": %q, "x-kubernetes-group-version-kind": [{"group": %q, "version": %q, "kind": %q}]}}`, typ, group,
			version, kind)))
}

func TestFetch(t *testing.T) {
	server := serve(t, map[string]string{
		"/prefix/openapi/v3":                     discoveryOf("api/v1", "apis/apps/v1"),
		"/prefix/openapi/v3/api/v1?hash=A":       modelFor("apps", "v1", "Deployment", "string"),
		"/prefix/openapi/v3/apis/apps/v1?hash=A": modelFor("apps", "v1", "Deployment", "integer"),
	})
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	r, err := Fetch(t.Context(), nil, server)
	require.NoError(t, err)
	require.Equal(t, []schema.GroupVersionKind{deployment}, r.Kinds())
	require.Equal(t, number, r.TypeFor(deployment), "the document of the kind's own group version counts")
}

func TestFetchV2(t *testing.T) {
	server := serve(t, map[string]string{
		"/prefix/openapi/v2": string(
			definitionsOf(
				`{"M": {"type": "string", "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}]}}`)),
	})
	r, err := Fetch(t.Context(), http.DefaultClient, server)
	require.NoError(t, err, "a server of old has one document")
	require.Equal(t, text, r.TypeFor(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}))
}

// TestFetchWithAServerDown: what could be had is there, and the error says what
// could not.
func TestFetchWithAServerDown(t *testing.T) {
	server := serve(t, map[string]string{
		"/prefix/openapi/v3": discoveryOf("apis/apps/v1", "apis/bad.example/v1",
			"apis/gone.example/v1", "apis/metrics.k8s.io/v1"),
		"/prefix/openapi/v3/apis/apps/v1?hash=A":           modelFor("apps", "v1", "Deployment", "integer"),
		"/prefix/openapi/v3/apis/bad.example/v1?hash=A":    modelFor("bad.example", "v1", "Bad", "unheard-of"),
		"/prefix/openapi/v3/apis/metrics.k8s.io/v1?hash=A": "503",
	})
	r, err := Fetch(t.Context(), nil, server)
	require.Len(t, r.Kinds(), 1)
	require.ErrorContains(t, err, `document apis/bad.example/v1: M: type: unrecognized type "unheard-of"`)
	require.ErrorContains(t, err,
		"document apis/gone.example/v1: openapi/v3/apis/gone.example/v1?hash=A: the server answered 404")
	require.ErrorContains(t, err,
		"document apis/metrics.k8s.io/v1: openapi/v3/apis/metrics.k8s.io/v1?hash=A: the server answered 503")
}

func TestFetchErrors(t *testing.T) {
	rows := []struct{ name, why, server, want string }{
		{"no URL", "the place is named", "http://a b", "the server's URL: "},
		{"no host", "nothing but a path is no server", "/openapi", `the server's URL: got "/openapi", want one with a host`},
		{"nothing there", "both places are named", serve(t, nil), "openapi/v2: the server answered 404"},
		{"server error", "v2 is for servers without v3, not for such that fail",
			serve(t, map[string]string{"/prefix/openapi/v3": "503"}), "openapi/v3: the server answered 503"},
		{"no discovery", "located", serve(t, map[string]string{"/prefix/openapi/v3": "[]"}),
			"discovery at openapi/v3: json: cannot unmarshal"},
		{"no group version", "an empty registry would look like success",
			serve(t, map[string]string{"/prefix/openapi/v3": discoveryOf()}), "discovery at openapi/v3 lists no group version"},
		{"all documents fail", "an empty registry would look like success",
			serve(t, map[string]string{"/prefix/openapi/v3": discoveryOf("api/v1")}), "document api/v1: "},
		{"too large", "an answer has a limit", serve(t, map[string]string{"/prefix/openapi/v3": "huge"}),
			"openapi/v3: more than 67108864 bytes"},
		{"bad v2", "located", serve(t, map[string]string{"/prefix/openapi/v2": `{"definitions": {"M": null}}`}),
			"openapi/v2: M: no schema"},
		{"a link elsewhere", "a link is always taken below the server's URL, so that credentials go nowhere else",
			serve(t, map[string]string{
				"/prefix/openapi/v3": `{"paths": {"api/v1": {"serverRelativeURL": "http://elsewhere.example/x"}}}`}),
			"the server answered 404"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r, err := Fetch(t.Context(), nil, row.server)
			require.ErrorContains(t, err, row.want, row.why)
			require.Nil(t, r)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Fetch(ctx, nil, serve(t, map[string]string{"/prefix/openapi/v3": discoveryOf("api/v1")}))
	require.ErrorIs(t, err, context.Canceled)
}
