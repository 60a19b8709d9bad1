package response

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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

// statusSerializers are the serializers for a Status, which has no version: those of all media types that are served.
var statusSerializers = sync.OnceValue(func() []runtime.SerializerInfo {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).SupportedMediaTypes()
})

// Error writes an error as a Status, in the media type that the client accepts, or in indented JSON if it accepts none,
// as kube-apiserver does.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	status := Status(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
	}
	var data bytes.Buffer
	a, err := Accept(r, statusSerializers(), false)
	if err == nil {
		err = a.Encoder().Encode(&status, &data)
	}
	if err != nil {
		a.MediaType = runtime.ContentTypeJSON
		text, err := json.MarshalIndent(&status, "", "  ")
		if err != nil {
			text = []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":500}`)
		}
		data.Reset()
		data.Write(text)
	}
	Bytes(w, r, a.MediaType, int(status.Code), data.Bytes())
}

// notAcceptable returns the 406 for a client that accepts no known media type.
func notAcceptable(known []runtime.SerializerInfo) error {
	var names []string
	for _, info := range known {
		names = append(names, info.MediaType)
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
