package verbs

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Begin stores an object of r as it is given, in JSON: with the fields that a create resets,
// such as status, uid and deletionTimestamp. It sets defaults and validates the object, and
// calls no admission hook. An object that exists stays as it is.
func (s *Server) Begin(ctx context.Context, r *resources.Resource, namespace string, data []byte) error {
	c, err := s.internal(ctx, r, namespace, "")
	if err != nil {
		return err
	}
	c.noNotify, c.Info.Verb = false, "create"
	json, ok := runtime.SerializerInfoForMediaType(c.Strategy.Serializers(), runtime.ContentTypeJSON)
	if !ok {
		return fmt.Errorf("%s is not served as JSON", r.GroupResource())
	}
	given, err := c.decodeBody(data, json, metav1.FieldValidationStrict, c.Strategy, r.GVK())
	if err != nil {
		return err
	}
	obj, err := c.prepareGiven(ctx, given)
	if err != nil {
		return err
	}
	stored, err := c.Strategy.EncodeStored(obj)
	if err != nil {
		return err
	}
	if err := resources.CheckSize(stored, c.MaxObject); err != nil {
		return err
	}
	_, err = c.Store.Put(ctx, r.Key(obj.GetNamespace(), obj.GetName()), stored, 0)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		return nil
	}
	if err == nil {
		c.notifyWritten(obj)
	}
	return err
}

// prepareGiven returns given as a create prepares it, but with what given has of the fields
// that a create resets.
func (c *Call) prepareGiven(ctx context.Context, given resources.Object) (resources.Object, error) {
	obj := given.DeepCopyObject().(resources.Object)
	if err := c.prepareNew(obj); err != nil {
		return nil, err
	}
	if err := c.checkNamespace(ctx, obj); err != nil {
		return nil, err
	}
	c.Strategy.PrepareForCreate(ctx, obj)
	obj.SetResourceVersion("")
	obj.SetDeletionTimestamp(given.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(given.GetDeletionGracePeriodSeconds())
	if uid := given.GetUID(); uid != "" {
		obj.SetUID(uid)
	}
	if t := given.GetCreationTimestamp(); !t.IsZero() {
		obj.SetCreationTimestamp(t.Rfc3339Copy())
	}
	if generation := given.GetGeneration(); generation != 0 {
		obj.SetGeneration(generation)
	}
	keepStatus(obj, given)
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && c.isDeletionComplete(obj) {
		return nil, apierrors.NewInvalid(c.Resource.GroupKind(), obj.GetName(), field.ErrorList{field.Invalid(
			field.NewPath("metadata", "deletionTimestamp"), obj.GetDeletionTimestamp(),
			"expected finalizers or a grace period, without which the object does not exist any more")})
	}
	errs, _ := c.validateByStrategy(ctx, writeRequest(obj, nil, metav1.UpdateOptions{}))
	if len(errs) == 0 {
		errs = apivalidation.ValidateObjectMetaAccessor(obj, c.Resource.Namespaced, anyName, field.NewPath("metadata"))
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.Resource.GroupKind(), obj.GetName(), errs)
	}
	c.Strategy.Canonicalize(obj)
	return obj, nil
}

// keepStatus sets the fields of the status that given has. Others stay as a create sets them.
func keepStatus(obj, given resources.Object) {
	if from, ok := given.(*unstructured.Unstructured); ok {
		to := obj.(*unstructured.Unstructured)
		status, ok := from.Object["status"]
		if !ok {
			return
		}
		kept, isMap := to.Object["status"].(map[string]any)
		fields, mayMerge := runtime.DeepCopyJSONValue(status).(map[string]any)
		if !isMap || !mayMerge {
			to.Object["status"] = runtime.DeepCopyJSONValue(status)
			return
		}
		for name, value := range fields {
			kept[name] = value
		}
		return
	}
	from, to := reflect.ValueOf(given.DeepCopyObject()).Elem(), reflect.ValueOf(obj).Elem()
	if from.Kind() != reflect.Struct {
		return
	}
	fromStatus, toStatus := from.FieldByName("Status"), to.FieldByName("Status")
	if !fromStatus.IsValid() || fromStatus.Kind() != reflect.Struct {
		return
	}
	for i := range fromStatus.NumField() {
		if f := fromStatus.Field(i); !f.IsZero() {
			toStatus.Field(i).Set(f)
		}
	}
}

// GoType reports whether objects of r are of the Go type of obj.
func (s *Server) GoType(r *resources.Resource, obj runtime.Object) bool {
	strategy, err := r.Strategy()
	return err == nil && reflect.TypeOf(strategy.New()) == reflect.TypeOf(obj)
}
