// Package writes handles creates, updates and patches with Tenure as the field manager. The handlers of
// k8s.io/apiserver can't use another field manager, so they serve only the other verbs.
//
// A write has the same steps as in k8s.io/apiserver's handlers, in the same order. It reads the options and the body,
// computes the new object ([call.put], create.go, patch.go, apply.go), tracks its managed fields, calls mutating
// admission (admission.go), and passes the object to the storage. The storage calls the strategy, validation and
// validating admission.
package writes

import (
	"cmp"
	"context"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/endpoints/handlers/finisher"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/lru"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/managedfields"
)

// A Handler handles writes.
type Handler struct {
	// Admission is called for each write; it may implement admission.MutationInterface and ValidationInterface.
	Admission admission.Interface
	Limits    request.Limits
	// Unchanged remembers no-op applies of built-in kinds; see unchanged.go. It must be nil if decoding the same object
	// may give different results.
	Unchanged *lru.Cache
	// Suffix returns the suffix of generated names. If it is nil, the storage generates names.
	Suffix func() string
}

// A call is a write to an endpoint.
type call struct {
	*Handler
	*resources.Endpoint
	request   *http.Request
	admit     admission.Interface
	user      user.Info
	namespace string
	name      string      // empty for a create, except of a subresource
	created   atomic.Bool // atomic because a write may continue after its request has timed out
}

// serve calls write, and responds with the object that it returns, in the media type that the client accepts.
func (h *Handler) serve(
	e *resources.Endpoint, w http.ResponseWriter, r *http.Request,
	write func(c *call, ctx context.Context) (runtime.Object, error),
) {
	c := &call{Handler: h, Endpoint: e, request: r}
	c.admit = admission.WithAudit(fieldmanager.NewManagedFieldsValidatingAdmissionController(h.Admission))
	c.user, _ = apirequest.UserFrom(r.Context())
	scope := *e.Scope
	writer := &asGet{ResponseWriter: w, ScopeNamer: scope.Namer, call: c, write: write}
	scope.Namer = writer
	handlers.GetResource(writer, &scope)(writer, r)
}

// An asGet presents a write as a get. The code of k8s.io/apiserver for responses (media types, Tables, errors) is
// exported only as a part of handlers.GetResource. GetResource calls, in this order:
//
//   - Name, which does not require a name, because a create has none;
//   - Get, which does the write, and returns the object for the response;
//   - WriteHeader, which responds with 201 if the write created the object.
type asGet struct {
	http.ResponseWriter
	handlers.ScopeNamer
	call  *call
	write func(c *call, ctx context.Context) (runtime.Object, error)
}

// Name implements handlers.ScopeNamer.
func (g *asGet) Name(r *http.Request) (namespace, name string, err error) {
	if info, ok := apirequest.RequestInfoFrom(r.Context()); ok && info.Name == "" {
		namespace, err = g.Namespace(r)
		return namespace, "", err
	}
	return g.ScopeNamer.Name(r)
}

// Get implements rest.Getter.
func (g *asGet) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	g.call.namespace, g.call.name = apirequest.NamespaceValue(ctx), name
	return g.write(g.call, ctx)
}

// WriteHeader implements http.ResponseWriter.
func (g *asGet) WriteHeader(code int) {
	if g.call.created.Load() && code == http.StatusOK {
		code = http.StatusCreated
	}
	g.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (g *asGet) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// decodeOptions decodes and validates the options in the query of a request.
func (c *call) decodeOptions(into runtime.Object, kind string, validate func() field.ErrorList) error {
	values := c.request.URL.Query()
	if err := internalscheme.ParameterCodec.DecodeParameters(values, c.Scope.MetaGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if errs := validate(); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	into.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	return nil
}

// manager returns the field manager of a write.
func (c *call) manager(requested string) string {
	if requested != "" {
		return requested
	}
	return managedfields.ManagerFromUserAgent(c.request.UserAgent())
}

// matchNamespace sets the namespace of the request in an object without a namespace, and rejects an object with another
// namespace.
func (c *call) matchNamespace(obj runtime.Object) error {
	o, err := meta.Accessor(obj)
	if err != nil {
		return nil // an object without metadata
	}
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(
		rest.ExpectedNamespaceForResource(c.namespace, c.Scope.Resource), o)
}

// update asks the storage to update an object. The functions in steps compute the new object from the live object. Then
// update calls mutating admission. If mayCreate is true and the object does not exist, update creates it.
func (c *call) update(
	ctx context.Context, given runtime.Object, options *metav1.UpdateOptions, mayCreate bool, steps ...rest.TransformFunc,
) (runtime.Object, error) {
	create := &metav1.CreateOptions{
		DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
	}
	create.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	steps = append(steps, func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
		a := c.attributes(obj, old, c.name, admission.Update, options, options.DryRun)
		if !exists(old) {
			a = c.attributes(obj, nil, c.name, admission.Create, create, options.DryRun)
		}
		err := c.mutate(ctx, a)
		dropDuplicateOwners(ctx, obj, handlers.DuplicateOwnerReferencesAfterMutatingAdmissionWarningFormat)
		return obj, err
	})
	onCreate := rest.AdmissionToValidateObjectFunc(c.admit,
		c.attributes(nil, nil, c.name, admission.Create, create, options.DryRun), c.Scope)
	onUpdate := rest.AdmissionToValidateObjectUpdateFunc(c.admit,
		c.attributes(nil, nil, c.name, admission.Update, options, options.DryRun), c.Scope)
	return finisher.FinishRequest(ctx, func() (runtime.Object, error) {
		obj, created, err := c.Storage.(rest.Updater).Update(ctx, c.name, rest.DefaultUpdatedObjectInfo(given, steps...),
			c.authorized(onCreate), onUpdate, mayCreate, options)
		c.created.Store(created && err == nil)
		return obj, err
	})
}

// exists reports whether an object is stored.
func exists(obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	o, err := meta.Accessor(obj)
	return err != nil || o.GetUID() != ""
}

// Update handles an update.
func (h *Handler) Update(e *resources.Endpoint, w http.ResponseWriter, r *http.Request) {
	h.serve(e, w, r, (*call).put)
}

func (c *call) put(ctx context.Context) (runtime.Object, error) {
	options := &metav1.UpdateOptions{}
	validate := func() field.ErrorList { return validation.ValidateUpdateOptions(options) }
	if err := c.decodeOptions(options, "UpdateOptions", validate); err != nil {
		return nil, err
	}
	given, err := c.decode(cmp.Or(options.FieldValidation, metav1.FieldValidationWarn), c.Storage.New())
	if err != nil {
		return nil, err
	}
	if err := c.checkName(given); err != nil {
		return nil, err
	}
	dropDuplicateOwners(c.request.Context(), given, handlers.DuplicateOwnerReferencesWarningFormat)
	manager := c.manager(options.FieldManager)
	return c.update(ctx, given, options, false, func(_ context.Context, obj, live runtime.Object) (runtime.Object, error) {
		return c.Fields.UpdateNoErrors(live, obj, manager), nil
	})
}
