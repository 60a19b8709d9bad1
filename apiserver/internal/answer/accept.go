// Package answer writes what a server answers: objects in the representation
// that the client accepts, and errors as Status objects.
package answer

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

// An Accepted is the representation that a client accepts.
type Accepted struct {
	runtime.SerializerInfo
	// Pretty asks for JSON that is laid out for people.
	Pretty bool
	// As is what objects are shown as instead of themselves: Table,
	// PartialObjectMetadata or PartialObjectMetadataList; nil for themselves.
	As *schema.GroupVersionKind
}

// Accept returns the first representation of known that the Accept header asks
// for; the first of all when there is no such header. views says that objects
// may be asked for in another shape. The error is a 406.
func Accept(r *http.Request, known []runtime.SerializerInfo, views bool) (Accepted, error) {
	return AcceptAs(r, known, func(as schema.GroupVersionKind, mediaType string) bool {
		return views && isView(as) && (as.Kind != "Table" || mediaType != runtime.ContentTypeProtobuf)
	})
}

// AcceptAs is Accept for what can be asked for in the shapes that allowed knows,
// each in the representation of a media type.
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

// withParameters returns a representation with the parameters that stand behind
// its name; ok is false when it can't be given so.
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

// isView reports whether objects can be shown as kind.
func isView(kind schema.GroupVersionKind) bool {
	switch kind.GroupVersion() {
	case metav1.SchemeGroupVersion, metav1beta1.SchemeGroupVersion:
		return slices.Contains([]string{"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}, kind.Kind)
	}
	return false
}

// isPretty reports whether the client wants, or looks like it wants, JSON for
// people.
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

// Encoder returns the serializer to write objects with.
func (a Accepted) Encoder() runtime.Encoder {
	if a.Pretty && a.PrettySerializer != nil {
		return a.PrettySerializer
	}
	return a.Serializer
}
