// Package request reads what a request asks for: its path, its query and its
// body.
package request

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info is what a path and a method ask for.
type Info struct {
	// Path is the path as it was sent.
	Path string
	// Resource says that the rest is set. Anything else is asked for by Path.
	Resource bool
	// Verb is get, list, watch, create, update, patch, delete, deletecollection;
	// empty for a method that is none of these, "proxy" for the old proxy paths.
	Verb string

	Group, Version string
	Namespace      string
	Plural         string
	Name           string
	Subresource    string
	// Parts is the path from Plural on.
	Parts []string
}

// GVR returns the resource that is asked for.
func (i *Info) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Plural}
}

// verbs are those of the methods on a named object.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// ofNamespaces are the subresources of a namespace; anything else behind a
// namespace's name is a resource in it.
var ofNamespaces = []string{"status", "finalize"}

// Parse returns what r asks for. A path below /api or /apis that names no
// resource is not one of a resource.
//
//	/api/v1/[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]
//	/apis/GROUP/VERSION/[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]
//
// Behind the version may stand watch/, which is an old way to ask for a watch.
func Parse(r *http.Request) *Info {
	info := &Info{Path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		info.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		info.Group, info.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return info
	}
	info.Resource = true
	info.Verb = verbs[r.Method]
	old := false
	if (parts[0] == "watch" || parts[0] == "proxy") && len(parts) > 1 {
		info.Verb, parts, old = parts[0], parts[1:], true
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.Namespace = parts[1]
		if len(parts) > 2 && !slices.Contains(ofNamespaces, parts[2]) {
			parts = parts[2:]
		}
	}
	info.Parts, info.Plural = parts, parts[0]
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 && !old {
		info.Subresource = strings.Join(parts[2:], "/")
	}
	if info.Name == "" {
		switch info.Verb {
		case "get":
			info.listOrWatch(r)
		case "delete":
			info.Verb = "deletecollection"
		}
	}
	return info
}

// listOrWatch tells a list from a watch, and takes the name from a field selector
// that asks for one object: who may read only one may do so in this way.
func (i *Info) listOrWatch(r *http.Request) {
	i.Verb = "list"
	var options internalversion.ListOptions
	if err := Options(r, &options); err != nil {
		// The verb is for who may; the error is said later.
		switch strings.ToLower(r.URL.Query().Get("watch")) {
		case "", "false", "0":
		default:
			i.Verb = "watch"
		}
		return
	}
	if options.Watch {
		i.Verb = "watch"
	}
	if options.FieldSelector == nil {
		return
	}
	if name, ok := options.FieldSelector.RequiresExactMatch("metadata.name"); ok &&
		len(content.IsPathSegmentName(name)) == 0 {
		i.Name = name
	}
}
