package manifest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func TestReadURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("kind: A\n---\nkind: B\n"))
	}))
	defer server.Close()
	docs, err := manifest.ReadDocuments(&process.Env{}, []string{server.URL + "/a.yaml"})
	require.NoError(t, err)
	require.Len(t, docs, 2)
	require.Equal(t, map[string]any{"kind": "B"}, docs[1].Tree)
	require.True(t, strings.HasPrefix(docs[1].Where(), server.URL+"/a.yaml: document 2"))

	for address, want := range map[string]string{
		server.URL + "/b.yaml":  "/b.yaml: expected status 200, got 404 Not Found",
		"http://127.0.0.1:1/a":  "refused",
		"http://[::1/malformed": "missing ']' in host",
	} {
		_, err := manifest.ReadDocuments(&process.Env{}, []string{address})
		require.ErrorContains(t, err, want)
	}
}
