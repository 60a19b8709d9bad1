package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// serveResource serves a request for an API resource, by its route in the current table. If the group version or the
// custom resource is not served, serveResource returns false without a response, and the caller responds.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo) bool {
	table := s.tables.Table()
	version, ok := table.Version(schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion})
	if !ok {
		return false
	}
	route, resource := table.Route(info)
	verb := route.Verb(r.Method, info)
	var err error
	switch {
	case resource == nil && len(version.Resources) > 0 && version.Resources[0].Custom:
		return false
	case resource == nil:
		err = response.NotFound()
	case resource.Custom:
		err = checkCustom(resource, verb, info)
	default:
		err = checkBuiltin(route, verb, r)
	}
	if errors.Is(err, errUnserved) {
		return false
	}
	var e *resources.Endpoint
	if err == nil {
		e, err = resource.Endpoint(route.Subresource)
	}
	if err == nil && e == nil {
		err = response.NotFound()
	}
	if err != nil {
		response.Error(w, r, err)
		return true
	}
	if resource.Deprecated != "" {
		warning.AddWarning(r.Context(), "", resource.Deprecated)
	}
	metrics.InstrumentHandlerFunc(metricVerb(info.Verb), resource.Group, resource.Version, resource.Plural,
		route.Subresource, metrics.CleanScope(info), "apiserver", resource.Deprecated != "", "",
		func(w http.ResponseWriter, r *http.Request) { s.handle(route, verb, e, w, r, info) })(w, r)
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

// handle calls the handler of a verb. The handlers of create, update and patch are in package writes, all others in
// k8s.io/apiserver.
func (s *Server) handle(
	route *resources.Route, verb string, e *resources.Endpoint, w http.ResponseWriter, r *http.Request,
	info *apirequest.RequestInfo,
) {
	if connecter, ok := e.Storage.(rest.Connecter); ok {
		path := info.Resource
		if info.Subresource != "" {
			path += "/" + info.Subresource
		}
		handlers.ConnectResource(connecter, e.Scope, s.writes.Admission, path, info.Subresource != "")(w, r)
		return
	}
	if route.Terminating && verb == "create" {
		response.Error(w, r, apierrors.NewForbidden(route.GroupResource(), info.Name,
			errors.New("create not allowed while custom resource definition is terminating")))
		return
	}
	switch verb {
	case "get":
		if getter, ok := e.Storage.(rest.GetterWithOptions); ok {
			handlers.GetResourceWithOptions(getter, e.Scope, info.Subresource != "")(w, r)
			return
		}
		handlers.GetResource(e.Storage.(rest.Getter), e.Scope)(w, r)
	case "list", "watch":
		s.list(route, e, w, r, verb == "watch" || info.Verb == "watch")
	case "create":
		s.writes.Create(e, w, r)
	case "update":
		s.writes.Update(e, w, r)
	case "patch":
		s.writes.Patch(e, w, r)
	case "delete", "deletecollection":
		s.delete(e, w, r, verb == "deletecollection")
	}
}

// deleteOptions are the kinds that the body of a deletion may have.
var deleteOptions = request.Kinds(internalscheme.Scheme, metav1.SchemeGroupVersion.WithKind("DeleteOptions"))

// delete deletes an object or a collection. It checks the body, which the handlers of k8s.io/apiserver then decode.
func (s *Server) delete(e *resources.Endpoint, w http.ResponseWriter, r *http.Request, isCollection bool) {
	body, err := request.Body(r, s.writes.Limits, deleteOptions)
	if err != nil {
		response.Error(w, r, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !isCollection {
		handlers.DeleteResource(e.Storage.(rest.GracefulDeleter), true, e.Scope, s.writes.Admission)(w, r)
		return
	}
	deleter := collectionDeleter{e.Storage.(rest.CollectionDeleter)}
	handlers.DeleteCollection(deleter, true, e.Scope, s.writes.Admission)(w, r)
}

// list serves a list or a watch. A watch ends with the server, and with the definition of its custom resource.
func (s *Server) list(
	route *resources.Route, e *resources.Endpoint, w http.ResponseWriter, r *http.Request, isWatch bool,
) {
	limit := time.Duration(0)
	if isWatch {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.running, cancel)()
		if route.Ended != nil {
			defer context.AfterFunc(route.Ended, cancel)()
		}
		r, limit = r.WithContext(ctx), s.options.Limits.Write
	}
	w = s.unread.writer(w, r, limit)
	watcher, _ := e.Storage.(rest.Watcher)
	handlers.ListResource(e.Storage.(rest.Lister), watcher, e.Scope, isWatch, s.options.Limits.Watch)(w, r)
}

// checkBuiltin returns the error for a path or a method that a built-in resource does not have.
func checkBuiltin(route *resources.Route, verb string, r *http.Request) error {
	switch {
	case route == nil:
		return response.NotFound()
	case verb == "":
		return response.MethodNotAllowed()
	case route.Subresource == "proxy":
		return nil
	}
	return response.CheckAccept(r, route.Subresource == "log")
}

// errUnserved reports a path that a custom resource does not have.
var errUnserved = errors.New("the path is not served")

// checkCustom is checkBuiltin for custom resources. Its errors name the object of the path, as in kube-apiserver, which
// routes custom resources separately.
func checkCustom(r *resources.Resource, verb string, info *apirequest.RequestInfo) error {
	isAcross := info.Namespace == "" && (info.Verb == "list" || info.Verb == "watch")
	_, isKnown := r.Subresource(info.Subresource)
	switch {
	case r.Namespaced != (info.Namespace != "") && !(r.Namespaced && isAcross):
		return errUnserved
	case info.Subresource != "" && !isKnown:
		return apierrors.NewNotFound(r.GroupResource(), info.Name)
	case verb == "":
		return apierrors.NewMethodNotSupported(r.GroupResource(), info.Verb)
	case (verb == "update" || verb == "patch") && info.Name == "":
		return apierrors.NewBadRequest("name must be provided")
	}
	return nil
}
