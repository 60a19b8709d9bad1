package apiserver

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

// enter admits a request: it limits the requests in flight, the size of the body and the time
// to write the response. It returns a function that ends the request, or the error for a
// request that is rejected.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo) (leave func(), err error) {
	limits := s.options.Limits
	if r.ContentLength > limits.Body {
		return nil, request.TooLarge(limits.Body)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("expected a body without Content-Encoding, got %q", encoding),
		}}
	}
	places, patience := s.requests, limits.Request+limits.Write
	if info.IsResourceRequest && info.Verb == "watch" {
		places, patience = s.watches, limits.Write
	}
	select {
	case places <- struct{}{}:
	default:
		return nil, apierrors.NewTooManyRequests("too many requests, please try again later", 1)
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, limits.Body)
	}
	// ResponseWriters without deadlines return an error, which does not matter. A deadline
	// applies to later requests of the connection too, so each request sets its own, unless net/http has done so: over
	// HTTP/2 it takes another goroutine to set one.
	if from, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || from.WriteTimeout != patience {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	}
	return func() { <-places }, nil
}
