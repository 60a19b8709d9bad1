// Package response writes HTTP responses: objects in the media type that the client accepts,
// and errors as Status objects.
package response

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

// Accepted is the result of content negotiation.
type Accepted struct {
	runtime.SerializerInfo
	// Pretty: the client wants indented JSON.
	Pretty bool
	// As is the kind to convert objects to: Table, PartialObjectMetadata or
	// PartialObjectMetadataList; nil if they are sent as they are.
	As *schema.GroupVersionKind
}

// Accept negotiates the media type of a response: the first of known that the Accept header
// accepts, or the first of all without the header. views allows conversion to Table and to
// metadata only. The error is a 406.
func Accept(r *http.Request, known []runtime.SerializerInfo, views bool) (Accepted, error) {
	return AcceptAs(r, known, func(as schema.GroupVersionKind, mediaType string) bool {
		return views && isView(as) && (as.Kind != "Table" || mediaType != runtime.ContentTypeProtobuf)
	})
}

// AcceptAs is Accept with a function that reports which kinds objects may be converted to.
func AcceptAs(
	r *http.Request, known []runtime.SerializerInfo, allowed func(as schema.GroupVersionKind, mediaType string) bool,
) (Accepted, error) {
	options, info, err := negotiation.NegotiateOutputMediaType(r, offer{known: known}, views(allowed))
	if err != nil {
		return Accepted{}, notAcceptable(known)
	}
	return Accepted{
		SerializerInfo: options.Accepted, Pretty: info.Serializer != options.Accepted.Serializer, As: options.Convert,
	}, nil
}

// offer is what package negotiation uses of a NegotiatedSerializer: its media types.
type offer struct {
	runtime.NegotiatedSerializer
	known []runtime.SerializerInfo
}

func (o offer) SupportedMediaTypes() []runtime.SerializerInfo { return o.known }

// views reports which kinds objects may be converted to.
type views func(as schema.GroupVersionKind, mediaType string) bool

func (v views) AllowsMediaTypeTransform(mimeType, subType string, as *schema.GroupVersionKind) bool {
	return as == nil || v(*as, mimeType+"/"+subType)
}

func (views) AllowsServerVersion(string) bool { return false }

func (views) AllowsStreamSchema(requested string) bool { return requested == "watch" }

// isView reports whether objects can be converted to kind.
func isView(kind schema.GroupVersionKind) bool {
	switch kind.GroupVersion() {
	case metav1.SchemeGroupVersion, metav1beta1.SchemeGroupVersion:
		return slices.Contains([]string{"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}, kind.Kind)
	}
	return false
}

// Encoder returns the serializer for objects.
func (a Accepted) Encoder() runtime.Encoder {
	if a.Pretty {
		return a.PrettySerializer
	}
	return a.Serializer
}

// builtinTypes are the media types of the responses of built-in resources, as a 406 lists them.
var builtinTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

// CheckAccept returns a 406 if a client accepts no media type of a built-in resource, whatever it wants it to be
// converted to. The log of a Pod is text, too.
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
