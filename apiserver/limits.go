package apiserver

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

// enter takes a place for a request, bounds its body and the time that its client
// may take to read the answer, and returns what gives the place back. The error
// says that there is no place, or that the request is too large to begin with.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, info *request.Info) (leave func(), err error) {
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
	if info.Verb == "watch" {
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
	// Writers that know no deadlines have none. A deadline holds for the requests
	// that follow on the connection, so that each one sets its own.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	return func() { <-places }, nil
}
