package verbs

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// Review handles a create of a kind that is not stored, such as SubjectAccessReview: it
// decodes the body, calls fill to set the status, and responds with the object.
func (c *Call) Review(kind schema.GroupVersionKind, fill func(ctx context.Context, obj resources.Object) error) error {
	k, err := c.StrategyOf(kind)
	if err != nil {
		return err
	}
	if c.Strategy = k; c.Info.Verb != "create" {
		return response.MethodNotAllowed()
	}
	if c.accepted, err = response.Accept(c.Request, k.Serializers(), false); err != nil {
		return err
	}
	options, err := request.Create(c.Request)
	if err != nil {
		return err
	}
	obj, err := c.decodeRequest(validationOf(options.FieldValidation), k, kind)
	if err != nil {
		return err
	}
	if c.Resource.Namespaced {
		switch obj.GetNamespace() {
		case "":
			obj.SetNamespace(c.Info.Namespace)
		case c.Info.Namespace:
		default:
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the " +
				"request")
		}
	}
	if err := c.admitAction(obj, options); err != nil {
		return err
	}
	if err := fill(c.Request.Context(), obj); err != nil {
		return err
	}
	c.send(http.StatusCreated, obj)
	return nil
}
