package verbs

import (
	"context"
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/managedfields"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// scale handles requests for the scale subresource.
func (c *Call) scale() error {
	strategy := c.ScaleOf(c.Strategy)
	var err error
	if c.accepted, err = response.Accept(c.Request, strategy.Serializers(), true); err != nil {
		return err
	}
	var obj resources.Object
	switch c.Info.Verb {
	case "get":
		obj, _, _, err = c.read(c.Request.Context(), c.Info.Name)
		if err == nil && obj == nil {
			err = apierrors.NewNotFound(c.Resource.GroupResource(), c.Info.Name)
		}
	case "update":
		obj, err = c.updateScale(strategy)
	case "patch":
		obj, _, err = c.patchWith(strategy, func(w write) (resources.Object, bool, error) { return c.runScale(w) }, "scale")
	default:
		return response.MethodNotAllowed()
	}
	if err != nil {
		return err
	}
	scale, err := c.scaleOf(obj)
	if err != nil {
		return err
	}
	view, err := c.newView()
	if err != nil {
		return err
	}
	view.strategy = strategy
	shown, err := view.object(scale)
	if err != nil {
		return err
	}
	c.send(http.StatusOK, shown)
	return nil
}

func (c *Call) updateScale(strategy resources.Strategy) (resources.Object, error) {
	options, err := request.Update(c.Request)
	if err != nil {
		return nil, err
	}
	given, err := c.decodeRequest(validationOf(options.FieldValidation), strategy, resources.ScaleKind)
	if err != nil {
		return nil, err
	}
	if err := c.checkName(given); err != nil {
		return nil, err
	}
	m, err := strategy.FieldManager("scale")
	if err != nil {
		return nil, err
	}
	manager := c.managerOf(options.FieldManager)
	obj, _, err := c.runScale(write{
		name: c.Info.Name, options: *options, uid: string(given.GetUID()),
		change: func(_ context.Context, live resources.Object) (resources.Object, error) {
			out, _, err := strategy.Decode(
				m.UpdateNoErrors(context.Background(), live, given.DeepCopyObject(), fieldmanager.UpdateOptions{Manager: manager}).
					DeepCopyObject(),
			)
			return out, err
		},
	})
	return obj, err
}

// runScale performs a write to the Scale of an object as a write to the object: it computes
// the new Scale, and copies its replicas and managed fields to the object. Admission sees the
// Scales.
func (c *Call) runScale(w write) (resources.Object, bool, error) {
	change := w.change
	w.change = func(ctx context.Context, live resources.Object) (resources.Object, error) {
		handler, shown, err := c.scaleWithFields(live)
		if err != nil {
			return nil, err
		}
		changed, err := change(ctx, shown)
		if err != nil {
			return nil, err
		}
		if err := c.mutate(ctx, writeRequest(changed, shown, w.options)); err != nil {
			return nil, err
		}
		scale, ok := changed.(*autoscalingv1.Scale)
		if !ok {
			return nil, fmt.Errorf("expected a Scale, got a %T", changed)
		}
		if errs := validateScale(scale); len(errs) > 0 {
			return nil, apierrors.NewInvalid(resources.ScaleKind.GroupKind(), scale.Name, errs)
		}
		entries, err := handler.ToParent(scale.ManagedFields)
		if err != nil {
			return nil, err
		}
		scaled := live.DeepCopyObject().(resources.Object)
		if err := c.Strategy.SetScale(scaled, scale.Spec.Replicas); err != nil {
			return nil, err
		}
		scaled.SetManagedFields(entries)
		if scale.ResourceVersion != "" {
			scaled.SetResourceVersion(scale.ResourceVersion)
		}
		return scaled, nil
	}
	w.subject = func(obj resources.Object) (resources.Object, error) { return c.scaleOf(obj) }
	return c.guaranteedUpdate(w)
}

// scaleWithFields returns the Scale of an object with the managed fields of the scale
// subresource.
func (c *Call) scaleWithFields(live resources.Object) (*managedfields.ScaleHandler, *autoscalingv1.Scale, error) {
	shown, err := c.scaleOf(live)
	if err != nil {
		return nil, nil, err
	}
	handler := managedfields.NewScaleHandler(live.GetManagedFields(), c.Resource.GroupVersion().String(),
		c.Strategy.ReplicasPaths())
	entries, err := handler.ToSubresource()
	if err != nil {
		return nil, nil, err
	}
	shown.ManagedFields = entries
	return handler, shown, nil
}

// scaleOf returns the Scale of an object.
func (c *Call) scaleOf(obj resources.Object) (*autoscalingv1.Scale, error) {
	replicas, ready, selector, err := c.Strategy.Scale(obj)
	if err != nil {
		return nil, err
	}
	scale := resources.NewScale()
	scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector = replicas, ready, selector
	scale.Name, scale.Namespace = obj.GetName(), obj.GetNamespace()
	scale.UID, scale.ResourceVersion = obj.GetUID(), obj.GetResourceVersion()
	scale.CreationTimestamp = obj.GetCreationTimestamp()
	return scale, nil
}

func validateScale(s *autoscalingv1.Scale) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(s.Spec.Replicas), field.NewPath("spec", "replicas"))
}
