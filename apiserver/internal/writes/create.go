package writes

import (
	"cmp"
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/finisher"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Create handles a create of an object or of a subresource, such as an eviction, which has the name of its parent.
func (h *Handler) Create(e *resources.Endpoint, w http.ResponseWriter, r *http.Request) {
	h.serve(e, w, r, (*call).create)
}

func (c *call) create(ctx context.Context) (runtime.Object, error) {
	options := &metav1.CreateOptions{}
	validate := func() field.ErrorList { return validation.ValidateCreateOptions(options) }
	if err := c.decodeOptions(options, "CreateOptions", validate); err != nil {
		return nil, err
	}
	obj, err := c.decode(cmp.Or(options.FieldValidation, metav1.FieldValidationWarn), c.Storage.New())
	if err != nil {
		return nil, err
	}
	name := c.name
	if name == "" {
		_, name, _ = c.Scope.Namer.ObjectName(obj) // empty for a generated name
	}
	if c.Scope.Resource == namespaces {
		c.namespace = name // a Namespace is its own namespace
		ctx = apirequest.WithNamespace(ctx, name)
	}
	if o, err := meta.Accessor(obj); err == nil {
		keeper, ok := c.Storage.(rest.SubresourceObjectMetaPreserver)
		if !ok || c.Scope.Subresource == "" || !keeper.PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() {
			rest.WipeObjectMetaSystemFields(o)
		}
	}
	dropDuplicateOwners(c.request.Context(), obj, handlers.DuplicateOwnerReferencesWarningFormat)
	a := c.attributes(obj, nil, name, admission.Create, options, options.DryRun)
	out, err := finisher.FinishRequest(ctx, func() (runtime.Object, error) {
		empty, err := c.Scope.Creater.New(c.Scope.Kind)
		if err != nil {
			return nil, err
		}
		obj = c.Fields.UpdateNoErrors(empty, obj, c.manager(options.FieldManager))
		if err := c.mutate(ctx, a); err != nil {
			return nil, err
		}
		dropDuplicateOwners(c.request.Context(), obj, handlers.DuplicateOwnerReferencesAfterMutatingAdmissionWarningFormat)
		c.generateName(obj)
		valid := rest.AdmissionToValidateObjectFunc(c.admit, a, c.Scope)
		if named, ok := c.Storage.(rest.NamedCreater); ok {
			return named.Create(ctx, name, obj, valid, options)
		}
		return c.Storage.(rest.Creater).Create(ctx, obj, valid, options)
	})
	c.created.Store(err == nil)
	if status, ok := out.(*metav1.Status); ok && status.Code == 0 {
		status.Code = http.StatusCreated
	}
	return out, err
}

// namespaces is the resource of Namespaces.
var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// maxGenerated is the maximum length of a generateName that is not shortened.
const maxGenerated = 63 - 5

// generateName sets the name of an object with a generateName. Handler.Suffix returns the suffix of the name.
func (c *call) generateName(obj runtime.Object) {
	o, err := meta.Accessor(obj)
	if err != nil || c.Suffix == nil || o.GetName() != "" || o.GetGenerateName() == "" {
		return
	}
	prefix := o.GetGenerateName()
	o.SetName(prefix[:min(len(prefix), maxGenerated)] + c.Suffix())
}
