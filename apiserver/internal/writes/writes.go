// Package writes handles creates, updates and patches with Tenure as the field manager, which the handlers of
// k8s.io/apiserver have no place for. Those handlers serve all other verbs.
//
// A write does what k8s.io/apiserver's handler does, in the same order: it reads the options and the body, computes the
// new object ([call.put], create.go, patch.go, apply.go), tracks its managed fields, calls mutating admission
// (admission.go), and hands it to the storage, which calls the strategy, validation and validating admission.
package writes

import (
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
	// Unchanged remembers applies of built-in kinds that changed nothing, see unchanged.go. It is nil if decoding the
	// same object may give different results.
	Unchanged *lru.Cache
	// Suffix returns the suffix of generated names; nil leaves them to the storage.
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
	name      string      // empty for a create
	created   atomic.Bool // atomic because a write may go on after its request timed out
}

// serve calls write, and responds with the object that it returns, in the media type that the client accepts. It passes
// write to the handler of gets in the place of a rest.Getter, because that handler does all the rest of a response.
func (h *Handler) serve(
	e *resources.Endpoint, w http.ResponseWriter, r *http.Request,
	write func(c *call, ctx context.Context) (runtime.Object, error),
) {
	c := &call{Handler: h, Endpoint: e, request: r}
	c.admit = admission.WithAudit(fieldmanager.NewManagedFieldsValidatingAdmissionController(h.Admission))
	c.user, _ = apirequest.UserFrom(r.Context())
	scope := *e.Scope
	scope.Namer = namer{scope.Namer}
	getter := getter(func(ctx context.Context, name string) (runtime.Object, error) {
		c.namespace, c.name = apirequest.NamespaceValue(ctx), name
		return write(c, ctx)
	})
	handlers.GetResource(getter, &scope)(&writer{w, c}, r)
}

// getter is a rest.Getter.
type getter func(ctx context.Context, name string) (runtime.Object, error)

func (g getter) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return g(ctx, name)
}

// namer is a ScopeNamer that allows requests without a name.
type namer struct{ handlers.ScopeNamer }

func (n namer) Name(r *http.Request) (namespace, name string, err error) {
	if info, ok := apirequest.RequestInfoFrom(r.Context()); ok && info.Name == "" {
		namespace, err = n.ScopeNamer.Namespace(r)
		return namespace, "", err
	}
	return n.ScopeNamer.Name(r)
}

// writer turns the code of a response into 201 if the write created an object.
type writer struct {
	http.ResponseWriter
	call *call
}

func (w *writer) WriteHeader(code int) {
	if w.call.created.Load() && code == http.StatusOK {
		code = http.StatusCreated
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish runs a write in a goroutine, so that a request that times out gets a response.
func finish(ctx context.Context, write func() (runtime.Object, error)) (runtime.Object, error) {
	return finisher.FinishRequest(ctx, write)
}

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

// matchNamespace sets the namespace of the request if the object has none, and rejects any other.
func (c *call) matchNamespace(obj runtime.Object) error {
	o, err := meta.Accessor(obj)
	if err != nil {
		return nil // without metadata
	}
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(
		rest.ExpectedNamespaceForResource(c.namespace, c.Scope.Resource), o)
}

// update asks the storage to update an object, which the steps compute from the live object. If mayCreate is set, it
// creates an object that does not exist. The last step calls mutating admission.
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
	return finish(ctx, func() (runtime.Object, error) {
		obj, created, err := c.Storage.(rest.Updater).Update(ctx, c.name, rest.DefaultUpdatedObjectInfo(given, steps...),
			c.authorized(onCreate), onUpdate, mayCreate, options)
		c.created.Store(created && err == nil)
		return obj, err
	})
}

// exists reports whether an object is a stored one.
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
	given, err := c.decode(validationOf(options.FieldValidation), c.Storage.New())
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
