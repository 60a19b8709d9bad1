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
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// update handles an update request.
func (c *Call) update() error {
	options, err := request.Update(c.Request)
	if err != nil {
		return err
	}
	given, err := c.decodeRequest(validationOf(options.FieldValidation), c.Strategy, c.Resource.GVK())
	if err != nil {
		return err
	}
	if err := c.checkName(given); err != nil {
		return err
	}
	if err := c.matchNamespace(given); err != nil {
		return err
	}
	markManagedFieldsReset(given)
	m, err := c.Strategy.FieldManager(c.Info.Subresource)
	if err != nil {
		return err
	}
	manager := c.managerOf(options.FieldManager)
	obj, created, err := c.guaranteedUpdate(write{
		name: c.Info.Name, options: *options, uid: string(given.GetUID()),
		mayCreate: c.Strategy.AllowCreateOnUpdate() && c.Info.Subresource == "",
		change: func(_ context.Context, live resources.Object) (resources.Object, error) {
			if live != nil {
				return copyAndDecode(
					c.Strategy,
					m.UpdateNoErrors(context.Background(), live, given, fieldmanager.UpdateOptions{Manager: manager}),
				)
			}
			if err := c.authorize("create"); err != nil {
				return nil, err
			}
			made := given.DeepCopyObject().(resources.Object)
			c.warnDuplicateOwners(made)
			return copyAndDecode(
				c.Strategy,
				m.UpdateNoErrors(context.Background(), nil, made, fieldmanager.UpdateOptions{Manager: manager}),
			)
		},
	})
	if err != nil {
		return err
	}
	if created {
		return c.respond(http.StatusCreated, obj)
	}
	return c.respond(http.StatusOK, obj)
}

// checkName checks that the name in the body is the name in the path.
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

// markManagedFieldsReset replaces an empty list of managed fields, which resets them, by a
// list with one empty entry, which means the same: Go structs can't tell an empty list from
// none.
func markManagedFieldsReset(obj resources.Object) {
	if list := obj.GetManagedFields(); list != nil && len(list) == 0 {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	}
}

// copyAndDecode returns a deep copy of what a field manager returned, which shares memory with what it was given.
// Callers may change the copy.
func copyAndDecode(strategy resources.Strategy, obj runtime.Object) (resources.Object, error) {
	out, _, err := strategy.Decode(obj.DeepCopyObject())
	return out, err
}
