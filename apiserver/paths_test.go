package apiserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
)

// TestOperatedPaths checks the requests of operators: a load balancer without credentials, monitoring with a user who
// may read metrics, and services that verify ServiceAccount tokens with such a token.
func TestOperatedPaths(t *testing.T) {
	store := newStore(t)
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	h := newHost(t, apiserver.Options{Store: store, Authorizer: authorizer, Anonymous: true})
	requireGet := func(want int, token, path string) string {
		t.Helper()
		code, body := asked{token: token, method: "GET", path: path}.of(h.Server)
		require.Equal(t, want, code, body)
		return body
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/livez?verbose", "/version"} {
		requireGet(200, "", path)
	}
	for _, path := range []string{
		"/metrics", "/openid/v1/jwks", "/.well-known/openid-configuration", "/debug/pprof/", "/api",
	} {
		requireGet(403, "", path)
	}

	h.must("POST", core+"configmaps", "", `{"metadata":{"name":"c"}}`)
	metrics := requireGet(200, "token", "/metrics")
	for _, name := range []string{
		`apiserver_request_duration_seconds_count{`, `apiserver_admission_step_admission_duration_seconds_count{`,
		`apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle"`,
		`apiserver_current_inflight_requests{request_kind="mutating"}`, `etcd_request_duration_seconds_count{`,
		`apiserver_longrunning_requests`, `process_resident_memory_bytes`,
	} {
		require.True(t, strings.Contains(metrics, "\n"+name), name)
	}

	account := h.must("POST", core+"serviceaccounts", "", `{"metadata":{"name":"robot"}}`)
	require.NotEmpty(t, account.GetUID())
	token := h.must("POST", core+"serviceaccounts/robot/token", "", `{}`)
	status := token.Object["status"].(map[string]any)
	var config struct {
		Issuer  string   `json:"issuer"`
		JWKSURI string   `json:"jwks_uri"`
		Signed  []string `json:"id_token_signing_alg_values_supported"`
	}
	document := requireGet(200, status["token"].(string), "/.well-known/openid-configuration")
	require.NoError(t, json.Unmarshal([]byte(document), &config))
	require.Equal(t, "https://kubernetes.default.svc", config.Issuer)
	require.Equal(t, "https://localhost/openid/v1/jwks", config.JWKSURI)
	require.Equal(t, []string{"ES256"}, config.Signed)
	var keys struct {
		Keys []map[string]string `json:"keys"`
	}
	require.NoError(t, json.Unmarshal([]byte(requireGet(200, status["token"].(string), "/openid/v1/jwks")), &keys))
	require.Len(t, keys.Keys, 1)
	require.Equal(t, "ES256", keys.Keys[0]["alg"])
}
