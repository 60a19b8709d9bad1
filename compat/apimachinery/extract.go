package apimachinery

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	smdtyped "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ExtractInto sets applyConfiguration, a pointer to a struct, to the fields that manager last applied to object through
// a subresource ("" for the main resource) and still owns. If manager owns nothing, applyConfiguration does not change,
// and the error is nil.
//
// object is the main resource and has type objectType. It is not changed, and applyConfiguration shares no memory with
// it. Undeclared fields and duplicates are not errors, because a newer server may have accepted them.
func ExtractInto(object runtime.Object, objectType smdtyped.ParseableType, manager string, applyConfiguration any,
	subresource string) error {
	t, err := smdv6.CachedType(objectType.Schema, objectType.TypeRef)
	if err != nil {
		return fmt.Errorf("type of object: %w", err)
	}
	return ExtractIntoOf(object, t, manager, applyConfiguration, subresource)
}

// ExtractIntoOf is [ExtractInto] for a type of Tenure.
func ExtractIntoOf(object runtime.Object, objectType *typed.Type, manager string, applyConfiguration any,
	subresource string) error {
	tree, err := gostruct.Tree(object)
	if err != nil {
		return fmt.Errorf("%T: %w", object, err)
	}
	if err := objectType.Validate(tree, typed.Rules{AllowDuplicates: true, AllowUnknown: true}); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("object: %w", err)
	}
	entry, ok := appliedBy(accessor, manager, subresource)
	if !ok {
		return nil
	}
	var owned *fieldpath.Set
	if entry.FieldsV1 != nil {
		if owned, err = fieldpath.Parse(fieldsv1.Bytes(entry.FieldsV1)); err != nil {
			return fmt.Errorf("managed fields of %q: %w", manager, err)
		}
	}
	if owned.IsEmpty() {
		return nil
	}
	// Fields that were applied as null may be missing in object. If manager owns only such fields, nothing remains. The
	// type of an object is a struct, so each part of an object is a map.
	fields := map[string]any{}
	if part, ok := objectType.Extract(tree, owned.Leaves(), false).(map[string]any); ok {
		fields = trees.Plain(part).(map[string]any)
	}
	if kind := object.GetObjectKind().GroupVersionKind(); fields["kind"] == nil && kind.Kind != "" {
		fields["kind"], fields["apiVersion"] = kind.Kind, kind.GroupVersion().String()
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, applyConfiguration); err != nil {
		return fmt.Errorf("%T: %w", applyConfiguration, err)
	}
	return nil
}

// appliedBy returns the Apply entry of a manager.
func appliedBy(object metav1.Object, manager, subresource string) (metav1.ManagedFieldsEntry, bool) {
	for _, e := range object.GetManagedFields() {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == subresource {
			return e, true
		}
	}
	return metav1.ManagedFieldsEntry{}, false
}
