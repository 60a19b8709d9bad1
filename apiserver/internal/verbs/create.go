package verbs

import (
	"context"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// nameAttempts limits how often a name is generated before a create with generateName fails.
const nameAttempts = 8

// create handles a create request.
func (c *Call) create() error {
	options, err := request.Create(c.Request)
	if err != nil {
		return err
	}
	obj, err := c.decodeRequest(validationOf(options.FieldValidation), c.Strategy, c.Resource.GVK())
	if err != nil {
		return err
	}
	obj.SetUID("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetSelfLink("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	if err := c.matchNamespace(obj); err != nil {
		return err
	}
	c.warnDuplicateOwners(obj)
	m, err := c.Strategy.FieldManager("")
	if err != nil {
		return err
	}
	// It shares memory with obj, which nobody else has.
	tracked, _, err := c.Strategy.Decode(
		m.UpdateNoErrors(
			context.Background(),
			nil,
			obj,
			fieldmanager.UpdateOptions{Manager: c.managerOf(options.FieldManager)},
		),
	)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	as := metav1.UpdateOptions{
		DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
	}
	if err := c.prepareMutation(ctx, tracked, as); err != nil {
		return err
	}
	out, err := c.insertNamed(ctx, tracked, as)
	if err != nil {
		return err
	}
	return c.respond(http.StatusCreated, out)
}

// insertNamed inserts an object, and may change it. With generateName it retries with other names while the name
// exists.
func (c *Call) insertNamed(
	ctx context.Context, obj resources.Object, options metav1.UpdateOptions,
) (resources.Object, error) {
	attempts := 1
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		attempts = nameAttempts
	}
	for {
		named := obj
		if attempts > 1 {
			named = obj.DeepCopyObject().(resources.Object)
		}
		out, err := c.insert(ctx, named, options)
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			return out, err
		}
		if attempts--; attempts > 0 {
			continue
		}
		return nil, c.alreadyExists(named, conflict.Current)
	}
}

// alreadyExists returns the error for a create of an object that exists.
func (c *Call) alreadyExists(obj resources.Object, record *storage.Record) error {
	err := apierrors.NewAlreadyExists(c.Resource.GroupResource(), obj.GetName())
	if obj.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(c.Resource.GroupResource(), obj.GetName(), 1)
	}
	if record == nil {
		return err
	}
	if live, decodeErr := c.decodeUncached(record.Value, record.Revision); decodeErr == nil &&
		live.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

func isDryRun(values []string) bool { return slices.Contains(values, metav1.DryRunAll) }
