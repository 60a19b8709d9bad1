// Package response writes HTTP responses, and errors as Status objects in the media type that the client accepts.
package response

import (
	"compress/gzip"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// Codecs encode Status objects and discovery documents.
var Codecs = sync.OnceValue(func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	utilruntime.Must(apidiscovery.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
})

// Error responds with an error as a Status object. It uses a media type that the client accepts, or JSON if the server
// supports no such media type.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		if known.Status().Code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
		}
		err = &apierrors.StatusError{ErrStatus: known.Status()}
	}
	responsewriters.ErrorNegotiated(err, Codecs(), metav1.Unversioned, w, r)
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

// builtinTypes are the media types of responses for built-in resources, as a 406 lists them.
var builtinTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

// CheckAccept returns a 406 if a client accepts no media type of built-in resources. CheckAccept ignores the parameters
// of media types, such as as=Table. For the log of a Pod, a client may also accept text.
func CheckAccept(r *http.Request, isLog bool) error {
	header := r.Header.Get("Accept")
	if header == "" {
		return nil
	}
	known := builtinTypes
	if isLog {
		known = append([]string{"text/plain"}, known...)
	}
	for clause := range strings.SplitSeq(header, ",") {
		mediaType, _, _ := strings.Cut(strings.TrimSpace(clause), ";")
		if mediaType = strings.TrimSpace(mediaType); mediaType == "*/*" || mediaType == "application/*" ||
			slices.Contains(known, mediaType) {
			return nil
		}
	}
	return generic(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"406: Not Acceptable\n\nAvailable representations: "+strings.Join(known, ", "))
}

// gzipFrom is the minimum size of compressed responses: compressing smaller responses costs more than it saves.
const gzipFrom = 128 << 10

// Bytes writes an encoded response with status 200. It compresses a large response if the client accepts gzip.
func Bytes(w http.ResponseWriter, r *http.Request, contentType string, data []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	if len(data) >= gzipFrom && acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return
		}
		// An error means that the connection is broken, so it can't be reported to the client.
		_, _ = z.Write(data)
		_ = z.Close()
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
