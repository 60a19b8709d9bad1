package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// serveResource serves a request for an API resource, which it looks up in the current table: by group, version and
// plural name. It returns false, and has not responded, if the group version or the custom resource is not served: the
// caller responds then.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo) bool {
	table := s.tables.Table()
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	version, ok := table.Version(gvr.GroupVersion())
	if !ok {
		return false
	}
	of := table.Resource(gvr)
	if of == nil {
		if len(version.Resources) > 0 && version.Resources[0].Custom {
			return false
		}
		response.Error(w, r, response.NotFound())
		return true
	}
	route := routeBuiltin
	if of.Custom {
		route = routeCustom
	}
	if err := route(of, r, info); errors.Is(err, errUnserved) {
		return false
	} else if err != nil {
		response.Error(w, r, err)
		return true
	}
	e, err := of.Endpoint(info.Subresource)
	if err != nil {
		response.Error(w, r, err)
		return true
	}
	if e == nil {
		response.Error(w, r, response.NotFound())
		return true
	}
	if of.Deprecated != "" {
		warning.AddWarning(r.Context(), "", of.Deprecated)
	}
	scope := metrics.CleanScope(info)
	metrics.InstrumentHandlerFunc(metricVerb(info.Verb), of.Group, of.Version, of.Plural, info.Subresource, scope,
		"apiserver", of.Deprecated != "", "", func(w http.ResponseWriter, r *http.Request) {
			s.handle(of, e, w, r, info)
		})(w, r)
	return true
}

// metricVerb returns the verb of a request in metrics.
func metricVerb(verb string) string {
	switch verb {
	case "create":
		return http.MethodPost
	case "update":
		return http.MethodPut
	}
	return strings.ToUpper(verb)
}

// handle calls the handler of a verb: that of package writes for create, update and patch, k8s.io/apiserver's for all
// others.
func (s *Server) handle(
	of *resources.Resource, e *resources.Endpoint, w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo,
) {
	if connecter, ok := e.Storage.(rest.Connecter); ok {
		path := info.Resource
		if info.Subresource != "" {
			path += "/" + info.Subresource
		}
		handlers.ConnectResource(connecter, e.Scope, s.writes.Admission, path, info.Subresource != "")(w, r)
		return
	}
	if of.Terminating && info.Verb == "create" {
		response.Error(w, r, apierrors.NewForbidden(of.GroupResource(), info.Name,
			errors.New("create not allowed while custom resource definition is terminating")))
		return
	}
	switch info.Verb {
	case "get":
		if getter, ok := e.Storage.(rest.GetterWithOptions); ok {
			handlers.GetResourceWithOptions(getter, e.Scope, info.Subresource != "")(w, r)
			return
		}
		handlers.GetResource(e.Storage.(rest.Getter), e.Scope)(w, r)
	case "list", "watch":
		s.list(of, e, w, r, info.Verb == "watch")
	case "create":
		s.writes.Create(e, w, r)
	case "update":
		s.writes.Update(e, w, r)
	case "patch":
		s.writes.Patch(e, w, r)
	case "delete":
		handlers.DeleteResource(e.Storage.(rest.GracefulDeleter), true, e.Scope, s.writes.Admission)(w, r)
	case "deletecollection":
		deleter := collectionDeleter{e.Storage.(rest.CollectionDeleter)}
		handlers.DeleteCollection(deleter, true, e.Scope, s.writes.Admission)(w, r)
	default:
		response.Error(w, r, response.MethodNotAllowed())
	}
}

// list serves a list or a watch. A watch ends with the server, and with the definition of its custom resource.
func (s *Server) list(
	of *resources.Resource, e *resources.Endpoint, w http.ResponseWriter, r *http.Request, isWatch bool,
) {
	if isWatch {
		ctx, cancel := s.untilEnd(r.Context(), of.Ended)
		defer cancel()
		r, w = r.WithContext(ctx), &eventWriter{w, s.options.Limits.Write}
	}
	watcher, _ := e.Storage.(rest.Watcher)
	handlers.ListResource(e.Storage.(rest.Lister), watcher, e.Scope, isWatch, s.options.Limits.Watch)(w, r)
}

// proxied is the name of subresources that take any method, and any path below them.
const proxied = "proxy"

// routeBuiltin rejects paths and methods that a built-in resource does not have.
func routeBuiltin(of *resources.Resource, r *http.Request, i *apirequest.RequestInfo) error {
	named, below := len(i.Parts) > 1, len(i.Parts) > 3
	allNamespaces := of.Namespaced && i.Namespace == ""
	if i.Namespace != "" && !of.Namespaced && !(of.Group == "" && of.Plural == "namespaces") ||
		allNamespaces && named {
		return response.NotFound()
	}
	if i.Subresource != "" {
		if _, ok := of.Subresource(i.Subresource); !ok || below && i.Subresource != proxied {
			return response.NotFound()
		}
	}
	if i.Subresource == proxied {
		return nil
	}
	if err := response.CheckAccept(r, i.Subresource == "log"); err != nil {
		return err
	}
	verb := i.Verb
	switch {
	case r.Method == http.MethodHead,
		verb == "create" && named && i.Subresource == "",
		(verb == "update" || verb == "patch") && !named,
		allNamespaces && !slices.Contains([]string{"list", "watch", "create"}, verb),
		allNamespaces && verb == "create" && of.Allows("get", ""),
		!of.Allows(verb, i.Subresource):
		return response.MethodNotAllowed()
	}
	return nil
}

// errUnserved reports a path that its custom resource does not have.
var errUnserved = errors.New("the path is not served")

// routeCustom is routeBuiltin for custom resources. kube-apiserver routes them separately: its errors
// name the object of the path.
func routeCustom(of *resources.Resource, _ *http.Request, i *apirequest.RequestInfo) error {
	across := i.Namespace == "" && i.Verb != "list" && i.Verb != "watch"
	if i.Namespace != "" && !of.Namespaced || of.Namespaced && across {
		return errUnserved
	}
	if i.Subresource != "" {
		if _, ok := of.Subresource(i.Subresource); !ok || len(i.Parts) > 3 {
			return apierrors.NewNotFound(of.GroupResource(), i.Name)
		}
	}
	switch {
	case !of.Allows(i.Verb, i.Subresource):
		return apierrors.NewMethodNotSupported(of.GroupResource(), i.Verb)
	case (i.Verb == "update" || i.Verb == "patch") && len(i.Parts) < 2:
		return apierrors.NewBadRequest("name must be provided")
	}
	return nil
}
