// Package verbs implements the REST verbs of API resources, one file for each verb.
//
// A request becomes a [Call]. Serve routes it (server.go) to a verb: get.go, list.go,
// watch.go, create.go, update.go, patch.go, delete.go, or to a subresource: scale.go, pods.go, connect.go.
// create, update and patch end in write.go, which has the steps that every write passes:
// mutating admission, PrepareForCreate or PrepareForUpdate of the resource's strategy,
// validation, validating admission, storage. apply.go hands an apply to the engine, and noop.go
// answers one that is known to change nothing. admission.go calls hooks and plugins. loopback.go
// is for writes by the server itself.
package verbs

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/lru"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/plugins"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/internal/watchcache"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// A Server serves the resources of a table from a storage.
type Server struct {
	Store   storage.Store
	Tables  *resources.Current
	Hooks   admission.Hooks
	Plugins *plugins.Plugins // nil: none
	// Validation is apiserver.Options.Validation.
	Validation func(ctx context.Context, w *admission.Write) (errs field.ErrorList, warnings []string, ok bool)
	Authorizer authorizer.Authorizer
	// Now and NewUID return the current time and new UIDs. Suffix returns a random suffix for
	// generateName.
	Now    func() time.Time
	NewUID func() types.UID
	Suffix func() string

	priorities priorityClasses
	// Body limits the size of request bodies.
	Body request.Limits
	// MaxObject limits the size of a stored object, in bytes.
	MaxObject int64
	// WriteTimeout is the write timeout of one watch event.
	WriteTimeout time.Duration
	// Guard, if not nil, authorizes a write once its outcome is known. RBAC prevents privilege
	// escalation with it.
	Guard func(ctx context.Context, a authorizer.Attributes, obj, live runtime.Object) error
	// Timeout is the timeout of requests other than watches.
	Timeout time.Duration
	// WatchTimeout is the default timeout of watches.
	WatchTimeout time.Duration
	// BookmarkInterval is the interval of watch bookmarks.
	BookmarkInterval time.Duration
	// Running ends all watches when it ends.
	Running context.Context
	// Handlers maps "group/plural/subresource" and, for whole resources, "group/plural" to
	// handlers. They handle subresources that are not a part of their object, such as
	// pods/eviction.
	Handlers map[string]func(*Call) error
	// Written is called after every write, before the response.
	Written func(ctx context.Context, r *resources.Resource, obj resources.Object)
	// Deleters maps "group/plural" to the Deleter of resources whose objects wait for more
	// than metadata.finalizers.
	Deleters map[string]Deleter

	// DisableNamespaceLifecycle lets objects be created in namespaces that do not exist.
	DisableNamespaceLifecycle bool
	// Controllers sets the finalizers that controllers remove; see controllers.go.
	Controllers bool

	// StrategyOf returns the strategy of a kind that is not stored, such as SubjectAccessReview.
	StrategyOf func(schema.GroupVersionKind) (resources.Strategy, error)
	// ScaleOf returns the strategy of the scale subresource of a resource.
	ScaleOf func(parent resources.Strategy) resources.Strategy

	// Watches are the watch caches of Store.
	Watches *watchcache.Caches

	// Objects caches decoded objects by their state. They are shared and must not be changed.
	Objects *lru.Cache

	// UnchangedWrites caches what is known of writes that change nothing; see noop.go.
	UnchangedWrites *lru.Cache
}

// A Deleter marks obj as being deleted, in place. stays is true if the object must stay in
// storage for now.
type Deleter func(obj resources.Object, now metav1.Time) (stays bool, err error)

// A Call is a request for an API resource.
type Call struct {
	*Server
	Writer   http.ResponseWriter
	Request  *http.Request
	Info     *apirequest.RequestInfo
	Resource *resources.Resource
	Strategy resources.Strategy

	accepted response.Accepted
	warnings []string
	written  bool // the response was started
	noNotify bool // Written is not called

	noPlugins bool // a write of the server itself, which admission plugins do not see
	admitted  bool // admission was called already

	stored  stored          // what the object of the response is stored as
	changed *storage.Record // what a write changes
}

// Serve handles a request for an API resource. It returns false, and has not responded, if the
// group version or the custom resource is not served: the caller responds then.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo) bool {
	table := s.Tables.Table()
	gvr := request.GVR(info)
	version, ok := table.Version(gvr.GroupVersion())
	if !ok {
		return false
	}
	c := &Call{Server: s, Writer: w, Request: r, Info: info}
	if c.Resource = table.Resource(gvr); c.Resource == nil {
		if len(version.Resources) > 0 && version.Resources[0].Custom {
			return false
		}
		response.Error(w, r, response.NotFound())
		return true
	}
	err := c.serve()
	if errors.Is(err, errUnserved) {
		return false
	}
	if err != nil && !c.written {
		c.writeWarnings()
		response.Error(w, r, c.toAPIError(err))
	}
	return true
}

func (c *Call) writeWarnings() {
	response.Warn(c.Writer, c.warnings)
	c.warnings = nil
}

// serve routes the request to its handler.
func (c *Call) serve() (err error) {
	if to, ok := c.connecter(); ok {
		if err := c.routeConnect(to); err != nil {
			return err
		}
		return c.connect(to)
	}
	if err := c.route(); err != nil {
		return err
	}
	name := c.Resource.Group + "/" + c.Resource.Plural
	if handler := c.Handlers[name]; handler != nil {
		return handler(c)
	}
	if c.Strategy, err = c.Resource.Strategy(); err != nil {
		return err
	}
	if c.Resource.Deprecated != "" {
		c.warnings = append(c.warnings, c.Resource.Deprecated)
	}
	if name+"/"+c.Info.Subresource == "/pods/log" { // its response is no object
		return c.log()
	}
	if c.accepted, err = response.Accept(c.Request, c.Strategy.Serializers(), true); err != nil {
		return err
	}
	if c.Info.Verb != "watch" && c.Timeout > 0 {
		ctx, cancel := context.WithTimeout(c.Request.Context(), c.Timeout)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
	}
	switch c.Info.Subresource {
	case "", "status", "approval", "ephemeralcontainers", "finalize", "resize":
	case "scale":
		return c.scale()
	default:
		if handler := c.Handlers[name+"/"+c.Info.Subresource]; handler != nil {
			return handler(c)
		}
		return notImplemented(c.Resource, c.Info.Subresource)
	}
	switch c.Info.Verb {
	case "get":
		return c.get()
	case "list":
		return c.list()
	case "watch":
		return c.watch()
	case "create":
		return c.create()
	case "update":
		return c.update()
	case "patch":
		return c.patch()
	case "delete":
		return c.delete()
	case "deletecollection":
		return c.deleteCollection()
	}
	return response.MethodNotAllowed()
}

// route rejects paths and methods that a built-in resource does not have.
func (c *Call) route() error {
	i, r := c.Info, c.Resource
	if r.Custom {
		return c.routeCustom()
	}
	if i.Namespace != "" && !r.Namespaced && !(r.Group == "" && r.Plural == "namespaces") {
		return response.NotFound()
	}
	if i.Subresource != "" {
		if _, ok := r.Subresource(i.Subresource); !ok || len(i.Parts) > 3 {
			return response.NotFound()
		}
	}
	if r.Namespaced && i.Namespace == "" && (len(i.Parts) > 1) {
		return response.NotFound()
	}
	if err := c.checkKey(); err != nil {
		return err
	}
	named := len(i.Parts) > 1
	switch i.Verb {
	case "create":
		if named && i.Subresource == "" {
			return response.MethodNotAllowed()
		}
	case "update", "patch":
		if !named {
			return response.MethodNotAllowed()
		}
	}
	allNamespaces := r.Namespaced && i.Namespace == ""
	switch {
	case c.Request.Method == http.MethodHead,
		allNamespaces && i.Verb != "list" && i.Verb != "watch" && i.Verb != "create",
		allNamespaces && i.Verb == "create" && r.Allows("get", ""),
		!r.Allows(i.Verb, i.Subresource):
		return response.MethodNotAllowed()
	}
	return nil
}

// checkKey rejects names and namespaces that are invalid in a storage key.
func (c *Call) checkKey() error {
	if c.Resource.Prefix == "" {
		return nil
	}
	if err := storage.CheckKey(c.Resource.Key(c.Info.Namespace, c.Info.Name)); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// errUnserved reports a path that its custom resource does not have.
var errUnserved = errors.New("the path is not served")

// routeCustom is route for custom resources. kube-apiserver routes them separately: its errors
// name the object of the path.
func (c *Call) routeCustom() error {
	i, r := c.Info, c.Resource
	across := i.Namespace == "" && i.Verb != "list" && i.Verb != "watch"
	if i.Namespace != "" && !r.Namespaced || r.Namespaced && across {
		return errUnserved
	}
	if i.Subresource != "" {
		if _, ok := r.Subresource(i.Subresource); !ok || len(i.Parts) > 3 {
			return apierrors.NewNotFound(r.GroupResource(), i.Name)
		}
	}
	named := len(i.Parts) > 1
	switch {
	case !r.Allows(i.Verb, i.Subresource):
		return apierrors.NewMethodNotSupported(r.GroupResource(), i.Verb)
	case (i.Verb == "update" || i.Verb == "patch") && !named:
		return apierrors.NewBadRequest("name must be provided")
	}
	return c.checkKey()
}

// toAPIError converts errors of the storage and of the context to API errors.
func (c *Call) toAPIError(err error) error {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return err
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, storage.ErrUnavailable):
		return apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the request took too long", 0)
	case errors.Is(err, storage.ErrCompacted):
		return apierrors.NewResourceExpired("The resourceVersion for the provided request is too old.")
	case errors.Is(err, storage.ErrFuture):
		return tooLarge(0, 0)
	}
	return err
}

func notImplemented(r *resources.Resource, subresource string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: r.GroupResource().String() + "/" + subresource + " needs a cluster behind the server",
	}}
}

func versionText(revision int64) string { return strconv.FormatInt(revision, 10) }
