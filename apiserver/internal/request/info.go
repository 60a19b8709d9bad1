// Package request parses requests: path, query and body.
package request

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info is what the path and the method of a request say, as kube-apiserver's RequestInfo.
type Info struct {
	// Path is the path of the URL.
	Path string
	// Resource is true for requests for an API resource. Otherwise only Path and Verb are set.
	Resource bool
	// Verb is get, list, watch, create, update, patch, delete or deletecollection; "proxy" for
	// the deprecated proxy paths; empty for other methods.
	Verb string

	Group, Version string
	Namespace      string
	Plural         string
	Name           string
	Subresource    string
	// Parts are the segments of the path from Plural on.
	Parts []string
}

// GVR returns the group, version and plural of the resource.
func (i *Info) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Plural}
}

// verbs are the verbs of the methods on a named object.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// ofNamespaces are the subresources of Namespaces. Any other segment after a namespace is a
// resource in it.
var ofNamespaces = []string{"status", "finalize"}

// Parse parses the path and the method of r. Paths under /api and /apis without a resource
// have Resource false.
//
//	/api/v1/[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]
//	/apis/GROUP/VERSION/[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]
//
// The deprecated watch/ may follow the version.
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

// listOrWatch sets the verb list or watch. It takes the name from a field selector on
// metadata.name, so that users who may read a single object can list and watch it.
func (i *Info) listOrWatch(r *http.Request) {
	i.Verb = "list"
	var options internalversion.ListOptions
	if err := Options(r, &options); err != nil {
		// The verb is needed for authorization; List returns the error later.
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
