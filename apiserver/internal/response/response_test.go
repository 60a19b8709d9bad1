package response_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

func TestAccept(t *testing.T) {
	const table = "as=Table;g=meta.k8s.io;v=v1"
	for _, row := range []struct {
		name, why, accept string
		views             bool
		mediaType, as     string // empty: 406
	}{
		{"none", "JSON is the default", "", true, "application/json", ""},
		{"anything", "as curl sends it", "*/*", true, "application/json", ""},
		{"any of a type", "a half wildcard", "application/*", true, "application/json", ""},
		{"first that is known", "in the client's order", "text/html, application/yaml, application/json", true,
			"application/yaml", ""},
		{"weights", "the heavier one first", "application/json;q=0.1, application/yaml;q=0.9", true, "application/yaml", ""},
		{"table", "as kubectl asks", "application/json;" + table + ",application/json", true, "application/json", "Table"},
		{"table where there is none", "the next clause counts", "application/json;" + table + ",application/json", false,
			"application/json", ""},
		{"table and nothing else", "nothing else is accepted", "application/json;" + table, false, "", ""},
		{"unknown view", "not taken for the object", "application/json;as=Chair;g=meta.k8s.io;v=v1", true, "", ""},
		{"view of another group", "not taken for the object", "application/json;as=Table;g=x;v=v1", true, "", ""},
		{"old view", "clients of old servers", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1", true,
			"application/json", "PartialObjectMetadata"},
		{"stream of something else", "only watches are streams", "application/json;stream=x", true, "", ""},
		{"unknown", "said as such", "text/html", true, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept", row.accept)
			got, err := response.Accept(r, internalscheme.Codecs.SupportedMediaTypes(), row.views)
			if row.mediaType == "" {
				require.Equal(t, int32(http.StatusNotAcceptable), response.Status(err).Code, row.why)
				return
			}
			require.NoError(t, err, row.why)
			require.Equal(t, row.mediaType, got.MediaType, row.why)
			if row.as == "" {
				require.Nil(t, got.As, row.why)
			} else {
				require.Equal(t, row.as, got.As.Kind, row.why)
			}
		})
	}
}

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
			response.Bytes(w, r, "text/plain", http.StatusOK, []byte(row.body))
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

func TestError(t *testing.T) {
	for _, row := range []struct {
		name, why string
		err       error
		code      int
		retry     string
	}{
		{"status", "answered as it is", apierrors.NewBadRequest("x"), http.StatusBadRequest, ""},
		{"wrapped status", "found behind what wraps it", errors.Join(errors.New("y"), apierrors.NewBadRequest("x")),
			http.StatusBadRequest, ""},
		{"any other", "the server's fault", errors.New("x"), http.StatusInternalServerError, ""},
		{"to be tried again", "clients wait that long", apierrors.NewTooManyRequests("x", 7), http.StatusTooManyRequests,
			"7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			response.Error(w, httptest.NewRequest(http.MethodGet, "/", nil), row.err)
			require.Equal(t, row.code, w.Code, row.why)
			require.Equal(t, row.retry, w.Header().Get("Retry-After"), row.why)
			var status metav1.Status
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
			require.Equal(t, "Status", status.Kind)
			require.Equal(t, int32(row.code), status.Code)
			require.Equal(t, metav1.StatusFailure, status.Status)
		})
	}
}
