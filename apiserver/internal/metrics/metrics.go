// Package metrics collects the server's metrics, with the names of kube-apiserver's metrics,
// for /metrics.
package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Request holds the labels of a request. Each label has few values: values that clients
// choose freely are not labels.
type Request struct {
	Verb        string // GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION
	Group       string
	Version     string
	Resource    string
	Subresource string // of a resource; otherwise the path
	Scope       string // resource, namespace or cluster; empty for requests without a resource
	DryRun      string
}

// Mutating reports whether the verb changes objects.
func (q Request) Mutating() bool {
	switch q.Verb {
	case "GET", "LIST", "WATCH", "HEAD", "OPTIONS", "CONNECT":
		return false
	}
	return true
}

// component returns the label component.
func (q Request) component() string {
	if q.Scope == "" {
		return ""
	}
	return "apiserver"
}

// Metrics are the metrics of a server. They are safe for concurrent use.
type Metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inflight  *prometheus.GaugeVec
	watches   *prometheus.GaugeVec
	handler   func() http.Handler
}

// seconds are the bucket bounds of durations.
var seconds = []float64{
	0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
}

// New returns zero metrics. version is the server's version, such as v1.36.3.
func New(version string) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests, by what they ask for and the code of the answer.",
		}, []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "How long requests took until their answer was written, in " +
				"seconds.", Buckets: seconds,
		}, []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"}),
		inflight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_current_inflight_requests", Help: "Requests under way, watches aside.",
		}, []string{"request_kind"}),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests", Help: "Watches under way.",
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}),
	}
	// Initialize lazily: most servers in tests never serve /metrics.
	m.handler = sync.OnceValue(func() http.Handler { return m.newHandler(version) })
	return m
}

func (m *Metrics) newHandler(version string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.durations, m.inflight, m.watches,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kubernetes_build_info", Help: "The version whose API is served; always 1.",
			ConstLabels: prometheus.Labels{"git_version": version, "go_version": runtime.Version(), "platform": runtime.GOOS +
				"/" + runtime.GOARCH},
		}, func() float64 { return 1 }))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// ServeHTTP serves the current metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler().ServeHTTP(w, r) }

// Begin counts a request as in flight until done is called.
func (m *Metrics) Begin(q Request) (done func()) {
	gauge := m.inflight.WithLabelValues("readOnly")
	switch {
	case q.Verb == "WATCH":
		gauge = m.watches.WithLabelValues(q.Verb, q.Group, q.Version, q.Resource, q.Subresource, q.Scope, q.component())
	case q.Mutating():
		gauge = m.inflight.WithLabelValues("mutating")
	}
	gauge.Inc()
	return gauge.Dec
}

// Count counts a completed request.
func (m *Metrics) Count(q Request, code int, took time.Duration) {
	m.requests.WithLabelValues(q.Verb, q.DryRun, q.Group, q.Version, q.Resource, q.Subresource, q.Scope, q.component(),
		strconv.Itoa(code)).Inc()
	m.durations.WithLabelValues(q.Verb, q.DryRun, q.Group, q.Version, q.Resource, q.Subresource, q.Scope,
		q.component()).Observe(took.Seconds())
}
