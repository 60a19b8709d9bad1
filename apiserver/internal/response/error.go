package response

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

// Status returns the Status of an error; that of an unknown error is a 500.
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

// Error writes an error as a Status in JSON, which every client can read.
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

// notAcceptable returns the 406 for a client that accepts no known media type.
func notAcceptable(known []runtime.SerializerInfo) error {
	var names []string
	for _, info := range known {
		// CBOR is served but not listed, as in kube-apiserver.
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

// NotFound returns the 404 for a resource or subresource that is not served.
func NotFound() error {
	return generic(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// MethodNotAllowed returns the 405 for a verb that the resource does not support.
func MethodNotAllowed() error {
	return generic(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
}

// UnsupportedMediaType returns the 415 for a body with an unsupported media type.
func UnsupportedMediaType() error {
	return generic(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
}

func generic(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	}}
}
