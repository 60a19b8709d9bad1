package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

const somePod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},` +
	`"spec":{"containers":[{"name":"c","image":"i"}]}}`

// send sends an apply to a server, or a create if path is a collection, and returns the response.
func send(server http.Handler, method, path, body string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer token")
	q.Header.Set("User-Agent", "test/v1")
	if method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, q)
	return w
}

// BenchmarkFirstApply is the time from a new server to its first answered apply, when run once in a new process:
//
//	go test -run '^$' -bench FirstApply/with$ -benchtime 1x
//
// The first validation registers the internal types.
func BenchmarkFirstApply(b *testing.B) {
	for name, options := range map[string]apiserver.Options{
		"with": {Token: "token", Validation: Validate}, "without": {Token: "token"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				server, err := apiserver.New(b.Context(), options)
				require.NoError(b, err)
				w := send(server, http.MethodPatch, "/api/v1/namespaces/default/pods/p?fieldManager=m", somePod)
				require.Equal(b, http.StatusCreated, w.Code, w.Body)
				require.NoError(b, server.Close())
			}
		})
	}
}
