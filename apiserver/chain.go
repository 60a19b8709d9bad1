package apiserver

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// infos parse the paths of requests.
var infos = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// tolerant resolves paths that can't be parsed, such as /api/v1/watch/, to no resource: they are not found.
type tolerant struct{}

func (tolerant) NewRequestInfo(r *http.Request) (*apirequest.RequestInfo, error) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		info = &apirequest.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	}
	return info, nil
}

// isLongRunning reports whether a request has no deadline.
var isLongRunning = genericfilters.BasicLongRunningRequestCheck(
	sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))

// chain returns the handler of all requests. It has the filters of k8s.io/apiserver, in the order of kube-apiserver.
// The last one here is called first.
func (s *Server) chain(authn authenticator.Request) http.Handler {
	codecs, sink, policy := builtin.Codecs(), s.options.Audit.Sink, s.options.Audit.Policy
	var h http.Handler = http.HandlerFunc(s.serve)
	h = filters.WithAuthorization(h, s.options.Authorizer, codecs)
	h = impersonation.WithImpersonation(h, s.options.Authorizer, codecs)
	// The limits of requests are the server's own, which users of system:masters keep to as well; this counts them.
	h = genericfilters.WithMaxInFlightLimit(h, s.options.Limits.Requests, s.options.Limits.Requests, isLongRunning)
	h = s.withLimits(h)
	h = filters.WithAudit(h, sink, policy, isLongRunning)
	failed := filters.WithFailedAuthenticationAudit(filters.Unauthorized(codecs), sink, policy)
	h = filters.WithAuthentication(h, authn, failed, s.accounts.audiences, nil)
	h = filters.WithRequestDeadline(h, sink, policy, isLongRunning, codecs, s.options.Limits.Request)
	h = filters.WithCacheControl(h)
	h = filters.WithWarningRecorder(h)
	h = filters.WithRequestReceivedTimestamp(h)
	h = s.withRecovery(h)
	h = filters.WithRequestInfo(h, tolerant{})
	return filters.WithAuditInit(h)
}

// withLimits limits requests; see enter.
func (s *Server) withLimits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := apirequest.RequestInfoFrom(r.Context())
		leave, err := s.enter(w, r, info)
		if err != nil {
			response.Error(w, r, err)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// withRecovery recovers from panics; see recoverPanic.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := &startedWriter{ResponseWriter: plain}
		defer s.recoverPanic(w, r)
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(w), r)
	})
}

// serve serves an authorized request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	info, _ := apirequest.RequestInfoFrom(r.Context())
	if !info.IsResourceRequest {
		s.mux.ServeHTTP(w, r)
		return
	}
	if !s.serveResource(w, r, info) {
		http.NotFound(w, r)
	}
}

// untilEnd returns a context that ends with the server or, if ended is not nil, when it is closed.
func (s *Server) untilEnd(ctx context.Context, ended <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.running, cancel)
	done := make(chan struct{})
	if ended != nil {
		go func() {
			select {
			case <-ended:
				cancel()
			case <-done:
			}
		}()
	}
	return ctx, func() {
		close(done)
		stop()
		cancel()
	}
}

// Audit records requests as kube-apiserver does, in events of audit.k8s.io. The zero Audit records nothing.
type Audit struct {
	// Policy decides what is recorded of a request. That of a policy file is
	// policy.NewPolicyRuleEvaluator of k8s.io/apiserver/pkg/audit/policy.
	Policy audit.PolicyRuleEvaluator
	// Sink gets the events, several at a time if requests end at the same time. A log is NewBackend of
	// k8s.io/apiserver/plugin/pkg/audit/log.
	Sink audit.Sink
}
