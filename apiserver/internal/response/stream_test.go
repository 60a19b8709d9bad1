package response

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stream has the bytes that were written, whatever their number, and is compressed as a
// response of known length is.
func TestStream(t *testing.T) {
	for _, test := range []struct {
		why      string
		size     int
		encoding string
		zipped   bool
		started  bool
	}{
		{why: "nothing", size: 0},
		{why: "a short response has its length", size: 1000, encoding: "gzip"},
		{why: "a long one does not", size: gzipFrom + 1, started: true},
		{why: "a long one is compressed", size: 3 * gzipFrom, encoding: "gzip", zipped: true, started: true},
	} {
		data := bytes.Repeat([]byte("0123456789"), test.size/10+1)[:test.size]
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", test.encoding)
		w := httptest.NewRecorder()
		s := NewStream(w, r, "text/plain")
		for rest := data; len(rest) > 0; {
			n, err := s.Write(rest[:min(len(rest), 777)])
			require.NoError(t, err, test.why)
			rest = rest[n:]
		}
		require.Equal(t, test.started, s.Started(), test.why)
		require.NoError(t, s.Close(), test.why)
		require.Equal(t, !test.started, w.Header().Get("Content-Length") != "", test.why)
		require.Equal(t, "text/plain", w.Header().Get("Content-Type"), test.why)
		body := io.Reader(w.Body)
		if test.zipped {
			require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), test.why)
			z, err := gzip.NewReader(w.Body)
			require.NoError(t, err, test.why)
			body = z
		}
		got, err := io.ReadAll(body)
		require.NoError(t, err, test.why)
		require.True(t, bytes.Equal(data, got), test.why)
	}
}
