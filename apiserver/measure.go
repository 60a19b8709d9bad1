package apiserver

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/metrics"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

// A measurement measures one request. The zero measurement is of an unauthenticated request,
// which is not counted.
type measurement struct {
	info  *apirequest.RequestInfo
	as    metrics.Request
	start time.Time
	done  func()
}

func (m *measurement) begin(s *Server, r *http.Request, i *apirequest.RequestInfo) {
	m.info, m.as, m.start = i, s.metricLabels(r, i), time.Now()
	m.done = s.metrics.Begin(m.as)
}

func (m *measurement) end(s *Server, w *startedWriter, r *http.Request) {
	if m.info == nil {
		return
	}
	m.done()
	if !m.info.IsResourceRequest {
		m.as = s.metricLabels(r, m.info) // the pattern is known after routing
	}
	code := w.code
	if code == 0 {
		code = http.StatusOK // the default of net/http
	}
	s.metrics.Count(m.as, code, time.Since(m.start))
}

// metricVerbs are the verbs whose label differs from their name.
var metricVerbs = map[string]string{"create": "POST", "update": "PUT"}

// metricMethods are the methods with a label of their own, for requests without a resource.
var metricMethods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true,
	http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// metricLabels returns the labels of a request. Clients choose paths and methods freely, so
// only those that are served become labels.
func (s *Server) metricLabels(r *http.Request, i *apirequest.RequestInfo) metrics.Request {
	if !i.IsResourceRequest {
		q := metrics.Request{Verb: "other"}
		if metricMethods[r.Method] {
			q.Verb = r.Method
		}
		// The pattern of the path is known after routing.
		if _, path, ok := strings.Cut(r.Pattern, "/"); ok {
			q.Subresource = "/" + strings.TrimSuffix(path, "{$}")
		}
		return q
	}
	q := metrics.Request{Verb: strings.ToUpper(i.Verb), Scope: "cluster"}
	if name, ok := metricVerbs[i.Verb]; ok {
		q.Verb = name
	}
	if q.Verb == "" || q.Verb == "PROXY" {
		q.Verb = "other"
	}
	if q.Verb == "PATCH" && strings.HasPrefix(r.Header.Get("Content-Type"), applyPrefix) {
		q.Verb = "APPLY"
	}
	switch {
	case i.Name != "" || i.Verb == "create":
		q.Scope = "resource"
	case i.Namespace != "":
		q.Scope = "namespace"
	}
	if r.URL.RawQuery != "" && r.URL.Query().Get("dryRun") == "All" {
		q.DryRun = "All"
	}
	if known := s.tables.Table().Resource(request.GVR(i)); known != nil {
		q.Group, q.Version, q.Resource = known.Group, known.Version, known.Plural
		if sub, ok := known.Subresource(i.Subresource); ok {
			q.Subresource = sub.Name
		}
	}
	return q
}

// applyPrefix is the prefix of the media types of apply.
var applyPrefix, _, _ = strings.Cut(string(types.ApplyYAMLPatchType), "+")
