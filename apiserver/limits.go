package apiserver

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// enter admits a request: it limits the requests in flight, the size of the body and the time
// to write the response. It returns a function that ends the request, or the error for a
// request that is rejected.
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
		places, until = s.watches, time.Time{} // each event has its own
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
	// applies to later requests of the connection too, so each request sets its own.
	_ = http.NewResponseController(w).SetWriteDeadline(until)
	return func() { <-places }, nil
}

// eventWriter limits the time to write an event of a watch, which may wait for the next one as long as it likes.
type eventWriter struct {
	http.ResponseWriter
	limit time.Duration
}

func (w *eventWriter) Write(data []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.limit))
	return w.ResponseWriter.Write(data)
}

// Flush ends the event.
func (w *eventWriter) Flush() {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
}

// Unwrap is for http.ResponseController.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
