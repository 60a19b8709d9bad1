package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Body reads the body of r, of at most limit bytes.
func Body(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, apierrors.NewTimeoutError("the body did not arrive in time", 0)
	case err != nil:
		return nil, apierrors.NewBadRequest("error reading the body: " + err.Error())
	case int64(len(data)) > limit:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	return data, nil
}

// InputSerializer returns the serializer for a Content-Type; the first one for an
// empty one. The error is a 415.
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
		// CBOR is served, but clients are not told to use what other servers lack.
		if info.MediaType != runtime.ContentTypeCBOR {
			accepted = append(accepted, info.MediaType)
		}
	}
	return runtime.SerializerInfo{}, UnsupportedMediaType(accepted)
}

// UnsupportedMediaType is the answer to a body of a type that is not accepted.
func UnsupportedMediaType(accepted []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " +
			strings.Join(accepted, ", "),
	}}
}
