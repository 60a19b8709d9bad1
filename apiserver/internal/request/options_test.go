package request_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

func TestDeleteOptions(t *testing.T) {
	for _, row := range []struct {
		name, why         string
		query, body, kind string
		code              int32
		grace             int64
	}{
		{"query", "a delete without a body", "gracePeriodSeconds=3", "", "", 0, 3},
		{"body", "what clients send", "gracePeriodSeconds=3", `{"gracePeriodSeconds":5}`, "application/json", 0, 5},
		{"YAML body", "any representation will do", "", "gracePeriodSeconds: 5", "application/yaml", 0, 5},
		{"unknown representation", "said as such", "", "x", "text/plain", http.StatusUnsupportedMediaType, 0},
		{"another kind", "not taken for options", "", `{"kind":"ListOptions","apiVersion":"meta.k8s.io/v1"}`,
			"application/json", http.StatusBadRequest, 0},
		{"no JSON", "said as such", "", `{`, "application/json", http.StatusBadRequest, 0},
		{"bad policy", "checked after it is read", "propagationPolicy=Maybe", "", "", http.StatusUnprocessableEntity, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodDelete, "/?"+row.query, nil)
			r.Header.Set("Content-Type", row.kind)
			o, err := request.Delete(r, []byte(row.body))
			if row.code != 0 {
				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status, row.why)
				require.Equal(t, row.code, status.Status().Code, row.why)
				return
			}
			require.NoError(t, err, row.why)
			require.NotNil(t, o.GracePeriodSeconds, row.why)
			require.Equal(t, row.grace, *o.GracePeriodSeconds, row.why)
		})
	}
}

func TestInputSerializer(t *testing.T) {
	known := internalscheme.Codecs.SupportedMediaTypes()
	for _, row := range []struct{ contentType, want string }{
		{"", "application/json"},
		{"application/json; charset=utf-8", "application/json"},
		{"application/yaml", "application/yaml"},
		{"text/plain", ""},
		{"application/", ""},
		{";;;", ""},
	} {
		info, err := request.InputSerializer(row.contentType, known)
		if row.want == "" {
			require.Error(t, err, row.contentType)
			continue
		}
		require.NoError(t, err, row.contentType)
		require.Equal(t, row.want, info.MediaType, row.contentType)
	}
}
