package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

// Limits limit a request body.
type Limits struct {
	Bytes   int64
	Nesting int // of lists and maps
}

// maxTrusted is how much memory a Content-Length gets before the body is there.
const maxTrusted = 64 << 10

// bodies are those that nobody needs any more.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// Release gives the memory of a body back that nobody refers to.
func Release(body []byte) {
	if cap(body) <= maxTrusted+bytes.MinRead {
		bodies.Put(&body)
	}
}

// Body reads the request body. The error is a 400, a 408 if it does not arrive in time, or a
// 413.
func Body(r *http.Request, limits Limits) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	var body bytes.Buffer
	if known := bodies.Get().(*[]byte); *known != nil {
		body = *bytes.NewBuffer((*known)[:0])
	}
	body.Grow(int(min(max(r.ContentLength, 0), maxTrusted)) + bytes.MinRead) // for ReadFrom to see the end
	_, err := body.ReadFrom(io.LimitReader(r.Body, limits.Bytes+1))
	data := body.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), int64(len(data)) > limits.Bytes:
		return nil, TooLarge(limits.Bytes)
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

// TooLarge returns the 413 for a body larger than limit bytes.
func TooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}

// InputSerializer returns the serializer for a Content-Type; the default is the first one. The
// error is a 415.
func InputSerializer(contentType string, known []runtime.SerializerInfo) (runtime.SerializerInfo, error) {
	if contentType == "" {
		return known[0], nil
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil {
		if info, ok := runtime.SerializerInfoForMediaType(known, mediaType); ok {
			return info, nil
		}
	}
	var accepted []string
	for _, info := range known {
		// CBOR is served but not listed, as in kube-apiserver.
		if info.MediaType != runtime.ContentTypeCBOR {
			accepted = append(accepted, info.MediaType)
		}
	}
	return runtime.SerializerInfo{}, negotiation.NewUnsupportedMediaTypeError(accepted)
}
