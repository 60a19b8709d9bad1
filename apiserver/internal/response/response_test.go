package response_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

func TestGzip(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, row := range []struct {
		name, why, accept, body string
		want                    bool
	}{
		{"long", "it pays", "gzip", long, true},
		{"among others", "as browsers ask", "deflate, gzip;q=0.5", long, true},
		{"short", "it costs more than it saves", "gzip", "x", false},
		{"not asked for", "the client could not read it", "", long, false},
		{"refused", "a weight of 0 is a refusal", "gzip;q=0", long, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", row.accept)
			w := httptest.NewRecorder()
			response.Bytes(w, r, "text/plain", []byte(row.body))
			body := io.Reader(w.Body)
			if row.want {
				require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), row.why)
				z, err := gzip.NewReader(w.Body)
				require.NoError(t, err)
				body = z
			} else {
				require.Empty(t, w.Header().Get("Content-Encoding"), row.why)
			}
			got, err := io.ReadAll(body)
			require.NoError(t, err)
			require.Equal(t, row.body, string(got))
		})
	}
}
