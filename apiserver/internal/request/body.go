// Package request reads the bodies of requests, within limits.
package request

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits limit a request body.
type Limits struct {
	Bytes   int64
	Nesting int // of lists and maps
}

// Body reads the body of a request.
func Body(r *http.Request, limits Limits) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limits.Bytes+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), int64(len(data)) > limits.Bytes:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limits.Bytes))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: "the body of the request did not arrive in time",
		}}
	case err != nil:
		return nil, apierrors.NewBadRequest("error reading the body: " + err.Error())
	}
	if deeper(r.Header.Get("Content-Type"), data, limits.Nesting) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body of the request is nested too deep: expected at most %d "+
			"levels", limits.Nesting))
	}
	return data, nil
}
