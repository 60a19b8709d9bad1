package writes

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

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
