package recorded

import (
	"fmt"
	"net/url"
	"strings"
)

// A Target is what a request is for.
type Target struct {
	Group, Version, Namespace, Resource, Name, Subresource string
}

// ParseTarget reads the path of a request, /api/v1/namespaces/N/RESOURCE/NAME/SUB or /apis/GROUP/VERSION/….
func ParseTarget(path string) (t Target, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, fmt.Errorf("path %q: expected /api/VERSION/… or /apis/GROUP/VERSION/…", path)
	}
	ofNamespace := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
	if len(parts) >= 3 && parts[0] == "namespaces" && !ofNamespace {
		t.Namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&t.Resource, &t.Name, &t.Subresource} {
		if i < len(parts) {
			if *into, err = url.PathUnescape(parts[i]); err != nil {
				return t, fmt.Errorf("path %q: %w", path, err)
			}
		}
	}
	return t, nil
}

// Collection returns the path of all objects of the resource in the namespace.
func (t Target) Collection() string {
	path := "/api/" + t.Version
	if t.Group != "" {
		path = "/apis/" + t.Group + "/" + t.Version
	}
	if t.Namespace != "" {
		path += "/namespaces/" + t.Namespace
	}
	return path + "/" + t.Resource
}

// Target returns what the request is for.
func (r *Asked) Target() (Target, error) { return ParseTarget(r.Path) }
