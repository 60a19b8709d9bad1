package metrics_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/internal/metrics"
)

func read(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m := metrics.New("v1.36.3")
	apply := metrics.Request{Verb: "APPLY", Group: "apps", Version: "v1", Resource: "deployments", Scope: "resource"}
	m.Count(apply, 200, 30*time.Millisecond)
	m.Count(apply, 409, time.Second)
	text := read(m)
	require.Contains(t, text, `apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",`+
		`resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 1`)
	require.Contains(t, text, `code="409"`)
	require.Contains(t, text, `apiserver_request_duration_seconds_count{component="apiserver",dry_run="",group="apps",`+
		`resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 2`)
	require.Contains(t, text, `kubernetes_build_info{git_version="v1.36.3"`)
	require.Contains(t, text, "go_goroutines")
}

func TestUnderWay(t *testing.T) {
	m := metrics.New("v1.36.3")
	apply := m.Begin(metrics.Request{Verb: "APPLY", Scope: "resource"})
	get := m.Begin(metrics.Request{Verb: "GET", Scope: "resource"})
	watch := m.Begin(metrics.Request{Verb: "WATCH", Version: "v1", Resource: "pods", Scope: "cluster"})
	text := read(m)
	require.Contains(t, text, `apiserver_current_inflight_requests{request_kind="mutating"} 1`)
	require.Contains(t, text, `apiserver_current_inflight_requests{request_kind="readOnly"} 1`)
	require.Contains(t, text, `apiserver_longrunning_requests{component="apiserver",group="",resource="pods",`+
		`scope="cluster",subresource="",verb="WATCH",version="v1"} 1`)
	apply()
	get()
	watch()
	text = read(m)
	require.Contains(t, text, `apiserver_current_inflight_requests{request_kind="mutating"} 0`)
	require.Contains(t, text, `apiserver_longrunning_requests{component="apiserver",group="",resource="pods",`+
		`scope="cluster",subresource="",verb="WATCH",version="v1"} 0`)
}
