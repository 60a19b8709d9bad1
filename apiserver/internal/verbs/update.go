package verbs

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// update puts the object of the body in the place of the one that is there, or
// makes it, of a kind that lets it.
func (c *Call) update() error {
	options, err := request.Update(c.Request)
	if err != nil {
		return err
	}
	given, err := c.body(validationOf(options.FieldValidation), c.Strategy, c.Resource.GVK())
	if err != nil {
		return err
	}
	if err := c.checkName(given); err != nil {
		return err
	}
	if err := c.matchNamespace(given); err != nil {
		return err
	}
	askReset(given)
	m, err := c.Strategy.FieldManager(c.Info.Subresource)
	if err != nil {
		return err
	}
	manager := c.managerOf(options.FieldManager)
	obj, created, err := c.run(write{
		name: c.Info.Name, dryRun: isDryRun(options.DryRun), uid: string(given.GetUID()),
		mayCreate: c.Strategy.AllowCreateOnUpdate() && c.Info.Subresource == "",
		change: func(_ context.Context, live resources.Object) (resources.Object, error) {
			if live != nil {
				return c.own(m.UpdateNoErrors(live, given.DeepCopyObject(), manager))
			}
			if err := c.authorize("create"); err != nil {
				return nil, err
			}
			made := given.DeepCopyObject().(resources.Object)
			c.warnDuplicateOwners(made)
			return c.own(m.UpdateNoErrors(nil, made, manager))
		},
	})
	if err != nil {
		return err
	}
	if created {
		return c.answer(http.StatusCreated, obj)
	}
	return c.answer(http.StatusOK, obj)
}

// checkName compares the name of a body with that of the path.
func (c *Call) checkName(obj resources.Object) error {
	if obj.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name "+
			"must be provided", c.Info.Name))
	}
	if obj.GetName() != c.Info.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			obj.GetName(), c.Info.Name))
	}
	return nil
}

// askReset makes an empty list of managed fields, by which a client asks for them
// to be dropped, one that says so in Go structs too.
func askReset(obj resources.Object) {
	if list := obj.GetManagedFields(); list != nil && len(list) == 0 {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	}
}

// own returns what a field manager returned as an object that shares no memory
// with what it was made of, so that it may be changed.
func (c *Call) own(obj runtime.Object) (resources.Object, error) {
	out, _, err := c.Strategy.Decode(obj.DeepCopyObject())
	return out, err
}
