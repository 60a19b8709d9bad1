package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Status returns what an error answers: the Status that it carries, or a 500.
func Status(err error) metav1.Status {
	var status metav1.Status
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
		if status.Code == 0 {
			status.Code = http.StatusInternalServerError
		}
		if status.Status == "" {
			status.Status = metav1.StatusFailure
		}
	} else {
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

// Error answers err as a Status in JSON, which every client reads.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	status := Status(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
	}
	data, err := json.Marshal(&status)
	if err != nil {
		data = []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":500}`)
	}
	Bytes(w, r, runtime.ContentTypeJSON, int(status.Code), append(data, '\n'))
}

// notAcceptable is the answer to a client that accepts none of known.
func notAcceptable(known []runtime.SerializerInfo) error {
	var names []string
	for _, info := range known {
		// CBOR is served, but clients are not told to use what other servers lack.
		if info.MediaType != runtime.ContentTypeCBOR {
			names = append(names, info.MediaType)
		}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("406: Not Acceptable\n\nAvailable representations: %s", strings.Join(names, ", ")),
		Details: &metav1.StatusDetails{},
	}}
}

// NotFound is the answer for a resource or subresource that is not served.
func NotFound() error {
	return generic(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// MethodNotAllowed is the answer to a method that is not served where it is used.
func MethodNotAllowed() error {
	return generic(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
}

// Unprocessable is the answer to a patch that can't be done.
func Unprocessable() error {
	return generic(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		"the server rejected our request due to an error in our request")
}

// UnsupportedMediaType is the answer to a body without a type that is accepted.
func UnsupportedMediaType() error {
	return generic(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
}

func generic(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	}}
}
