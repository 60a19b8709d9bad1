package apiserver

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver/internal/metrics"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

// A measurement is what is counted of one request. The zero measurement is of a
// request that nobody is known to have sent, and counts nothing.
type measurement struct {
	info  *request.Info
	as    metrics.Request
	start time.Time
	done  func()
}

func (m *measurement) begin(s *Server, r *http.Request, i *request.Info) {
	m.info, m.as, m.start = i, s.counted(r, i), time.Now()
	m.done = s.metrics.Begin(m.as)
}

func (m *measurement) end(s *Server, w *beganWriter, r *http.Request) {
	if m.info == nil {
		return
	}
	m.done()
	if !m.info.Resource {
		m.as = s.counted(r, m.info) // its pattern is known by now
	}
	code := w.code
	if code == 0 {
		code = http.StatusOK // what net/http answers for those who answer nothing
	}
	s.metrics.Count(m.as, code, time.Since(m.start))
}

// countedVerbs are what verbs are counted as, where it is not their own name.
var countedVerbs = map[string]string{"create": "POST", "update": "PUT"}

// countedMethods are those that are counted apart where no resource is asked for.
var countedMethods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true,
	http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// counted returns what a request is counted as. Clients choose paths and methods
// freely: only what is served is counted by its name.
func (s *Server) counted(r *http.Request, i *request.Info) metrics.Request {
	if !i.Resource {
		q := metrics.Request{Verb: "other"}
		if countedMethods[r.Method] {
			q.Verb = r.Method
		}
		// The pattern of the path is known once it has been looked up.
		if _, path, ok := strings.Cut(r.Pattern, "/"); ok {
			q.Subresource = "/" + strings.TrimSuffix(path, "{$}")
		}
		return q
	}
	q := metrics.Request{Verb: strings.ToUpper(i.Verb), Scope: "cluster"}
	if name, ok := countedVerbs[i.Verb]; ok {
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
	if known := s.tables.Table().Resource(i.GVR()); known != nil {
		q.Group, q.Version, q.Resource = known.Group, known.Version, known.Plural
		if sub, ok := known.Subresource(i.Subresource); ok {
			q.Subresource = sub.Name
		}
	}
	return q
}

// applyPrefix is how the media types of applied objects begin.
var applyPrefix, _, _ = strings.Cut(string(types.ApplyYAMLPatchType), "+")
