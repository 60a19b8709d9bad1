// Package verbs does what requests for resources ask for: one file a verb.
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
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/answer"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// A Server serves resources from a store.
type Server struct {
	Store      storage.Store
	Tables     *resources.Current
	Hooks      admission.Hooks
	Authorizer auth.Authorizer
	// Now and NewUID are where times and uids come from; Suffix returns what is
	// put behind a generateName.
	Now    func() time.Time
	NewUID func() types.UID
	Suffix func() string
	// Body bounds the body of a request.
	Body request.Limits
	// MaxObject bounds an object as it is stored, in bytes.
	MaxObject int64
	// Write is how long a client may take to read one event of a watch.
	Write time.Duration
	// Guard, if not nil, is asked before an object is stored.
	Guard func(ctx context.Context, a auth.Attributes, obj, live runtime.Object) error
	// Timeout ends requests that are not watches.
	Timeout time.Duration
	// WatchTimeout ends watches that do not say how long they want to last.
	WatchTimeout time.Duration
	// Bookmarks is how often an idle watch that allows it is sent a bookmark.
	Bookmarks time.Duration
	// Done ends all watches when it is closed.
	Done <-chan struct{}
	// Special answers subresources that are not a part of their object, by
	// "group/plural/subresource" or "group/plural" for whole resources.
	Special map[string]func(*Call) error
	// Written is told of every write, after it is stored and before it is answered.
	Written func(ctx context.Context, r *resources.Resource, obj resources.Object)
	// Deleting says how objects of a resource are deleted that need more than
	// the finalizers among their metadata; by group/plural.
	Deleting map[string]Deleter

	// DisableNamespaceLifecycle lets objects be created in namespaces that do not exist.
	DisableNamespaceLifecycle bool

	objects cache
}

// A Deleter changes an object that is to be deleted, in place, and reports whether
// it has to stay for now.
type Deleter func(obj resources.Object, now metav1.Time) (stays bool, err error)

// A Call is one request for a resource.
type Call struct {
	*Server
	Writer   http.ResponseWriter
	Request  *http.Request
	Info     *request.Info
	Resource *resources.Resource
	Kind     resources.Kind

	accepted answer.Accepted
	warnings []string
	written  bool // the answer is
	quiet    bool // Written is not told
}

// Serve answers a request for a resource. It reports false, and has answered
// nothing, when there is no such group version, or none with such a custom
// resource, or the path is not one of it.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, info *request.Info) bool {
	table := s.Tables.Table()
	version, ok := table.Version(info.GVR().GroupVersion())
	if !ok {
		return false
	}
	c := &Call{Server: s, Writer: w, Request: r, Info: info}
	if c.Resource = table.Resource(info.GVR()); c.Resource == nil {
		if len(version.Resources) > 0 && version.Resources[0].Custom {
			return false
		}
		answer.Error(w, r, answer.NotFound())
		return true
	}
	err := c.serve()
	if errors.Is(err, errUnserved) {
		return false
	}
	if err != nil && !c.written {
		c.warn()
		answer.Error(w, r, c.outward(err))
	}
	return true
}

func (c *Call) warn() {
	answer.Warn(c.Writer, c.warnings)
	c.warnings = nil
}

// serve finds out who answers, and lets them.
func (c *Call) serve() (err error) {
	if err := c.route(); err != nil {
		return err
	}
	name := c.Resource.Group + "/" + c.Resource.Plural
	if special := c.Special[name]; special != nil {
		return special(c)
	}
	if c.Kind, err = c.Resource.Behaviour(); err != nil {
		return err
	}
	if c.Resource.Deprecated != "" {
		c.warnings = append(c.warnings, c.Resource.Deprecated)
	}
	if c.accepted, err = answer.Accept(c.Request, c.Kind.Serializers(), true); err != nil {
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
		if special := c.Special[name+"/"+c.Info.Subresource]; special != nil {
			return special(c)
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
	return answer.MethodNotAllowed()
}

// route refuses paths and methods that are not served.
func (c *Call) route() error {
	i, r := c.Info, c.Resource
	if r.Custom {
		return c.routeCustom()
	}
	if i.Namespace != "" && !r.Namespaced && !(r.Group == "" && r.Plural == "namespaces") {
		return answer.NotFound()
	}
	if i.Subresource != "" {
		if _, ok := r.Subresource(i.Subresource); !ok {
			return answer.NotFound()
		}
	}
	if r.Namespaced && i.Namespace == "" && (len(i.Parts) > 1) {
		return answer.NotFound()
	}
	if err := c.checkKey(); err != nil {
		return err
	}
	named := len(i.Parts) > 1
	switch i.Verb {
	case "create":
		if named && i.Subresource == "" {
			return answer.MethodNotAllowed()
		}
	case "update", "patch":
		if !named {
			return answer.MethodNotAllowed()
		}
	}
	allNamespaces := r.Namespaced && i.Namespace == ""
	switch {
	case c.Request.Method == http.MethodHead,
		allNamespaces && i.Verb != "list" && i.Verb != "watch" && i.Verb != "create",
		allNamespaces && i.Verb == "create" && r.Allows("get", ""),
		!r.Allows(i.Verb, i.Subresource):
		return answer.MethodNotAllowed()
	}
	return nil
}

// checkKey refuses a name or namespace that no key has.
func (c *Call) checkKey() error {
	if c.Resource.Prefix == "" {
		return nil
	}
	if err := storage.CheckKey(c.Resource.Key(c.Info.Namespace, c.Info.Name)); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// errUnserved says that a path is not one of its custom resource.
var errUnserved = errors.New("the path is not served")

// routeCustom is route for custom resources, which a real server routes by itself:
// what is not there is said of the object that the path names.
func (c *Call) routeCustom() error {
	i, r := c.Info, c.Resource
	across := i.Namespace == "" && i.Verb != "list" && i.Verb != "watch"
	if i.Namespace != "" && !r.Namespaced || r.Namespaced && across {
		return errUnserved
	}
	if i.Subresource != "" {
		if _, ok := r.Subresource(i.Subresource); !ok {
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

// authorize asks whether the request may do what was not known to be asked for
// when the request came in.
func (c *Call) authorize(verb string) error {
	user := auth.UserOf(c.Request.Context())
	allowed, reason, err := c.Authorizer.Authorize(c.Request.Context(), auth.Attributes{
		User: user, Verb: verb, Group: c.Info.Group, Version: c.Info.Version, Resource: c.Info.Plural,
		Subresource: c.Info.Subresource, Namespace: c.Info.Namespace, Name: c.Info.Name,
	})
	if err == nil && allowed {
		return nil
	}
	return Forbidden(user, verb, c.Info, reason)
}

// outward returns err as it is answered: errors of the store and of the context
// have a code of their own.
func (c *Call) outward(err error) error {
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
