package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestKubernetesVersion: /version is that of the embedded documents and the Go types.
func TestKubernetesVersion(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	w := h.ask("GET", "/version", "", "")
	require.Equal(t, http.StatusOK, w.Code)
	for _, want := range []string{`"gitVersion": "` + openapi.KubernetesVersion + `"`, `"minor": "37"`,
		`"minCompatibilityMinor": "36"`} {
		require.Contains(t, w.Body.String(), want)
	}
}
