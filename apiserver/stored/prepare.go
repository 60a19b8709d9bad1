package stored

import (
	"context"
	"errors"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Prepare does to an object what a server does before it stores it in the place of
// live (nil: created) through a subresource, "" for the object itself: it sets
// defaults, drops what is pruned, keeps of live what such a write leaves alone,
// sets what follows from the write, such as the generation, and validates the
// outcome. The object has the metadata that a server sets already: uid and
// creationTimestamp. What is returned is the object as it is stored, at the version
// that is stored; the errors, one for each fault, name the field.
//
// Both objects are of the kind's version.
func (k *Kind) Prepare(tree, live map[string]any, subresource string) (map[string]any, error) {
	obj, err := k.object(tree)
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	// Where before stays nil, it has to be nil of its interface.
	var before resources.Object
	if live == nil {
		k.kind.PrepareForCreate(obj)
	} else {
		if before, err = k.object(live); err != nil {
			return nil, err
		}
		obj.SetResourceVersion(before.GetResourceVersion())
		k.kind.PrepareForUpdate(obj, before, subresource)
		errs = apivalidation.ValidateObjectMetaAccessorUpdate(obj, before, field.NewPath("metadata"))
	}
	more, _ := k.kind.Validate(context.Background(), obj, before, subresource)
	if errs = append(errs, more...); len(errs) > 0 {
		joined := make([]error, len(errs))
		for i, e := range errs {
			joined[i] = e
		}
		return nil, errors.Join(joined...)
	}
	obj.SetResourceVersion("")
	data, err := k.kind.EncodeStored(obj)
	if err != nil {
		return nil, err
	}
	if err := CheckSize(data); err != nil {
		return nil, err
	}
	return parse(data)
}

// parse reads JSON, with whole numbers as int64.
func parse(data []byte) (tree map[string]any, err error) {
	err = kjson.UnmarshalCaseSensitivePreserveInts(data, &tree)
	return tree, err
}
