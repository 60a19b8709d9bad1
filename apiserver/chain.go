package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// requestInfos parses the paths of requests.
var requestInfos = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// tolerant treats paths that can't be parsed, such as /api/v1/watch/, as paths without a resource: the response is a
// 404.
type tolerant struct{}

func (tolerant) NewRequestInfo(r *http.Request) (*apirequest.RequestInfo, error) {
	info, err := requestInfos.NewRequestInfo(r)
	if err != nil {
		info = &apirequest.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	}
	return info, nil
}

// isLongRunning reports whether a request has no deadline.
var isLongRunning = genericfilters.BasicLongRunningRequestCheck(
	sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))

// chain returns the handler of all requests. It has the filters of k8s.io/apiserver, in the order of kube-apiserver.
// The last filter in this function is called first. paths serves all paths that are not resources.
func (s *Server) chain(authn authenticator.Request, paths http.Handler) http.Handler {
	codecs, sink, policy := builtin.Codecs(), s.options.Audit.Sink, s.options.Audit.Policy
	h := s.serve(paths)
	h = filters.WithAuthorization(h, s.options.Authorizer, codecs)
	h = impersonation.WithConstrainedImpersonation(h, s.options.Authorizer, codecs)
	// This filter only feeds metrics. withLimits, which is called before it, limits the requests.
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

// withLimits limits requests; see Server.enter.
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

// withRecovery recovers from panics; see Server.recoverPanic.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := &startedWriter{ResponseWriter: plain}
		defer s.recoverPanic(w, r)
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(w), r)
	})
}

// serve returns the handler of authorized requests.
func (s *Server) serve(paths http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := apirequest.RequestInfoFrom(r.Context())
		switch {
		case !info.IsResourceRequest:
			paths.ServeHTTP(w, r)
		case !s.serveResource(w, r, info):
			http.NotFound(w, r)
		}
	})
}

// Audit records requests as kube-apiserver does, in events of audit.k8s.io. The zero Audit records nothing.
type Audit struct {
	// Policy decides what is recorded about a request. To make it from the content of a policy file, use
	// NewPolicyRuleEvaluator of k8s.io/apiserver/pkg/audit/policy.
	Policy audit.PolicyRuleEvaluator
	// Sink gets the events, concurrently if requests end at the same time. To write a log, use NewBackend of
	// k8s.io/apiserver/plugin/pkg/audit/log.
	Sink audit.Sink
}

// enter admits a request: it limits the requests in flight, the size of the body, and the time to write the response.
// It returns a function that ends the request, or the error for a request that is rejected.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo) (leave func(), err error) {
	limits := s.options.Limits
	if r.ContentLength > limits.Body {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limits.Body))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("expected a body without Content-Encoding, got %q", encoding),
		}}
	}
	places, until := s.requests, time.Now().Add(limits.Request+limits.Write)
	if isWatch := info.IsResourceRequest && isLongRunning(r, info); isWatch {
		places, until = s.watches, time.Time{} // each watch event has its own deadline
	}
	body := r.ContentLength
	if body < 0 {
		body = limits.Body
	}
	leave = func() {}
	if as, ok := apirequest.UserFrom(r.Context()); ok && !isUnlimited(as, r) {
		if leave, ok = places.enter(as, load{1, body}); !ok {
			return nil, apierrors.NewTooManyRequests("too many requests, please try again later", 1)
		}
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, limits.Body)
	}
	// ResponseWriters that do not support deadlines return an error, which does not matter. A deadline also applies to
	// later requests of the connection, so each request sets its own.
	_ = http.NewResponseController(w).SetWriteDeadline(until)
	return leave, nil
}

// recoverPanic recovers from a panic in a request, for example in an admission hook: it logs the panic and responds
// with 500. It aborts a response that has started.
func (s *Server) recoverPanic(w *startedWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
		panic(p)
	}
	s.options.Log.Error("a request made the server panic", "method", r.Method, "path", r.URL.Path, "panic", p, "stack",
		string(debug.Stack()))
	if w.code != 0 {
		panic(http.ErrAbortHandler)
	}
	reason, _, _ := strings.Cut(fmt.Sprint(p), "\n") // the other lines are the stack
	response.Error(w, r, apierrors.NewInternalError(errors.New("the request made the server panic: "+reason)))
}

// startedWriter records whether the response has started, and its code.
type startedWriter struct {
	http.ResponseWriter
	code int // 0: not started
}

func (w *startedWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *startedWriter) Write(data []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Flush sends the buffered data.
func (w *startedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// CloseNotify implements http.CloseNotifier, which the wrappers of k8s.io/apiserver require. Nothing uses the channel:
// the context of a request ends when its connection does.
func (w *startedWriter) CloseNotify() <-chan bool { return nil }

// Unwrap is for http.ResponseController.
func (w *startedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
