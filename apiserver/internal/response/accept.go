// Package response writes HTTP responses: objects in the media type that the client accepts,
// and errors as Status objects.
package response

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	header := r.Header.Get("Accept")
	if header == "" {
		return Accepted{SerializerInfo: known[0], Pretty: isPretty(r)}, nil
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		for _, info := range known {
			if clause.Type != "*" &&
				(clause.Type != info.MediaTypeType || clause.SubType != "*" && clause.SubType != info.MediaTypeSubType) {
				continue
			}
			if out, ok := withParameters(info, clause.Params, allowed); ok {
				out.Pretty = out.Pretty || isPretty(r)
				return out, nil
			}
		}
	}
	return Accepted{}, notAcceptable(known)
}

// withParameters applies the parameters of a media type. ok is false if they can't be
// satisfied.
func withParameters(
	info runtime.SerializerInfo, params map[string]string, allowed func(schema.GroupVersionKind, string) bool,
) (Accepted, bool) {
	out := Accepted{SerializerInfo: info, Pretty: params["pretty"] == "1"}
	var as schema.GroupVersionKind
	asked := false
	for name, value := range params {
		switch name {
		case "as":
			as.Kind, asked = value, true
		case "g":
			as.Group, asked = value, true
		case "v":
			as.Version, asked = value, true
		case "stream":
			if value != "" && (value != "watch" || info.StreamSerializer == nil) {
				return out, false
			}
		case "sv":
			if value != "" {
				return out, false
			}
		}
	}
	if !asked {
		return out, true
	}
	out.As = &as
	return out, allowed(as, info.MediaType)
}

// isView reports whether objects can be converted to kind.
func isView(kind schema.GroupVersionKind) bool {
	switch kind.GroupVersion() {
	case metav1.SchemeGroupVersion, metav1beta1.SchemeGroupVersion:
		return slices.Contains([]string{"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}, kind.Kind)
	}
	return false
}

// isPretty reports whether the client wants indented JSON, or is a browser, curl or wget.
func isPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if p := r.URL.Query().Get("pretty"); p != "" {
			pretty, err := strconv.ParseBool(p)
			return err == nil && pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// Encoder returns the serializer for objects.
func (a Accepted) Encoder() runtime.Encoder {
	if a.Pretty && a.PrettySerializer != nil {
		return a.PrettySerializer
	}
	return a.Serializer
}
