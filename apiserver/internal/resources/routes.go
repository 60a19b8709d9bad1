package resources

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// A Route handles requests to paths of one form, such as /api/v1/namespaces/NAMESPACE/pods/NAME/log.
//
// Authorization checks the RequestInfo of a request. A path has a Route only if it has the form that its RequestInfo
// describes. Therefore the storage gets the resource, subresource, namespace and name that were authorized. The
// exceptions are the same as in kube-apiserver:
//
//   - a Namespace is its own namespace: its RequestInfo has the Namespace's name as namespace and as name;
//   - if the path of a create has no name, the body names the object;
//   - the body of a Binding names the Pod; the name of an eviction, a binding or a token is the name of its parent.
type Route struct {
	*Resource
	Subresource string

	// verbs maps the method of a request to a verb if the resource is built in. For a custom resource, it maps the
	// verb of the RequestInfo to a verb.
	verbs map[string]string
}

// Verb returns the verb of a request. It is empty if the route does not have the method, or if r is nil.
func (r *Route) Verb(method string, info *apirequest.RequestInfo) string {
	switch {
	case r == nil:
		return ""
	case r.Custom:
		return r.verbs[info.Verb]
	}
	return r.verbs[method]
}

// A form is the form of a path below its group and version:
//
//	[watch/ | proxy/] [namespaces/NAMESPACE/] resource [/NAME [/subresource [/MORE]]]
type form struct {
	prefix      string // "watch", "proxy" or empty
	isIn        bool   // whether the path names a namespace
	resource    string
	isNamed     bool
	subresource string
	hasMore     bool
}

// formOf returns the form of the path of a request. kube-apiserver's router of custom resources reads only the
// RequestInfo. So for custom resources, formOf ignores the segments of a path that this router ignores.
func formOf(info *apirequest.RequestInfo, isCustom bool) form {
	f := form{
		resource: info.Resource, isNamed: len(info.Parts) > 1, subresource: info.Subresource,
		hasMore: len(info.Parts) > 3,
	}
	segments := strings.Split(strings.Trim(info.Path, "/"), "/")[2:]
	if info.APIPrefix != "api" {
		segments = segments[1:] // skip the group
	}
	if segments[0] == "watch" || segments[0] == "proxy" {
		f.prefix, segments = segments[0], segments[1:]
	}
	f.isIn = len(segments) > len(info.Parts)
	if isCustom {
		f.isIn, f.isNamed, f.hasMore = info.Namespace != "", f.isNamed && f.prefix == "", false
	}
	return f
}

// Methods of a collection, an object and a subresource. Each maps to the verb that the resource must support.
var (
	collectionVerbs = map[string]string{
		http.MethodGet: "list", http.MethodPost: "create", http.MethodDelete: "deletecollection",
	}
	objectVerbs = map[string]string{
		http.MethodGet: "get", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
	subresourceVerbs = map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete",
	}
)

// proxied is the name of subresources that support all methods, at their own path and at all paths below it.
const proxied = "proxy"

// newRoutes returns the routes of a resource.
func (r *Resource) newRoutes() map[form]*Route {
	out := map[form]*Route{}
	add := func(f form, verbs map[string]string) {
		f.resource = r.Plural
		out[f] = &Route{Resource: r, Subresource: f.subresource, verbs: verbs}
	}
	if r.Custom {
		r.addCustom(add)
		return out
	}
	addAllowed := func(f form, methods map[string]string, has []string) {
		verbs := maps.Clone(methods)
		maps.DeleteFunc(verbs, func(_, verb string) bool { return !slices.Contains(has, verb) })
		if len(verbs) > 0 {
			add(f, verbs)
		}
	}
	watch := map[string]string{http.MethodGet: "watch"}
	addAllowed(form{isIn: r.Namespaced}, collectionVerbs, r.Verbs)
	addAllowed(form{isIn: r.Namespaced, isNamed: true}, objectVerbs, r.Verbs)
	addAllowed(form{prefix: "watch", isIn: r.Namespaced}, watch, r.Verbs)
	addAllowed(form{prefix: "watch", isIn: r.Namespaced, isNamed: true}, watch, r.Verbs)
	if r.Namespaced {
		addAllowed(form{}, map[string]string{http.MethodGet: "list"}, r.Verbs)
		addAllowed(form{prefix: "watch"}, watch, r.Verbs)
	}
	for _, s := range r.Subresources {
		f, methods := form{isIn: r.Namespaced, isNamed: true, subresource: s.Name}, subresourceVerbs
		if s.Name == proxied {
			methods = maps.Clone(methods)
			methods[http.MethodHead], methods[http.MethodOptions] = "get", "get"
			addAllowed(form{isIn: f.isIn, isNamed: true, subresource: s.Name, hasMore: true}, methods, s.Verbs)
		}
		addAllowed(f, methods, s.Verbs)
	}
	return out
}

// addCustom adds the routes of a custom resource. As in kube-apiserver, these routes depend on the verb of the
// RequestInfo and not on the method, so a watch may have any method. An update or patch without a name has a route,
// because its error differs from the error for a path without a route.
func (r *Resource) addCustom(add func(f form, verbs map[string]string)) {
	allow := func(verbs ...string) map[string]string {
		out := map[string]string{}
		for _, verb := range verbs {
			out[verb] = verb
		}
		return out
	}
	add(form{isIn: r.Namespaced}, allow("list", "watch", "create", "deletecollection", "update", "patch"))
	add(form{isIn: r.Namespaced, isNamed: true}, allow("get", "create", "update", "patch", "delete"))
	for _, s := range r.Subresources {
		add(form{isIn: r.Namespaced, isNamed: true, subresource: s.Name}, allow(s.Verbs...))
	}
	add(form{prefix: "watch", isIn: r.Namespaced}, allow("watch"))
	if r.Namespaced { // paths for all namespaces
		add(form{}, allow("list", "watch"))
		add(form{prefix: "watch"}, allow("watch"))
	}
}

// Route returns the route of a request, and the resource that its path names. Each is nil if it does not exist.
func (t *Table) Route(info *apirequest.RequestInfo) (*Route, *Resource) {
	r := t.Resource(schema.GroupVersionResource{
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
	})
	if r == nil {
		return nil, nil
	}
	r.routing.Do(func() { r.routes = r.newRoutes() })
	return r.routes[formOf(info, r.Custom)], r
}
