package apimachinery

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
)

// carries reports whether obj has a list of managed fields, which may be empty.
func carries(obj runtime.Object) bool {
	if u, ok := obj.(runtime.Unstructured); ok && !gostruct.IsNil(obj) {
		list, exists := managedfields.Of(u.UnstructuredContent())
		return exists && list != nil
	}
	accessor, err := gostruct.Accessor(obj)
	return err == nil && accessor.GetManagedFields() != nil
}

// setEntries sets the managed fields of from in obj, in place.
func setEntries(obj, from runtime.Object) error {
	to, ofTree := obj.(runtime.Unstructured)
	_, fromTree := from.(runtime.Unstructured)
	if ofTree != fromTree {
		// One of them is a Go struct, so entries are converted.
		converted, err := managedfields.Copy(obj, from)
		if err != nil {
			return err
		}
		from = converted
	}
	if ofTree {
		list, _ := managedfields.Of(from.(runtime.Unstructured).UnstructuredContent())
		return setTreeEntries(to, list)
	}
	source, err := meta.Accessor(from)
	if err != nil {
		return fmt.Errorf("%T: %w", from, err)
	}
	target, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("%T: %w", obj, err)
	}
	target.SetManagedFields(source.GetManagedFields())
	return nil
}

func setTreeEntries(obj runtime.Unstructured, list any) error {
	tree := obj.UnstructuredContent()
	metadata, ok := tree["metadata"].(map[string]any)
	switch {
	case !ok && tree["metadata"] != nil:
		return errors.New("metadata: expected a map")
	case list == nil:
		delete(metadata, "managedFields")
		return nil
	case metadata == nil:
		metadata = map[string]any{}
		tree["metadata"] = metadata
		obj.SetUnstructuredContent(tree)
	}
	metadata["managedFields"] = list
	return nil
}

// copied returns a deep copy of obj. An unstructured object may have numbers of any Go type; the copy has only int64
// and float64, so that a host can copy it with DeepCopy.
func copied(obj runtime.Object) runtime.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		out, _ := trees.Plain(u.Object).(map[string]any)
		return &unstructured.Unstructured{Object: out}
	}
	return obj.DeepCopyObject()
}

// copiedWithoutEntries is [copied] without managed fields.
func copiedWithoutEntries(obj runtime.Object) runtime.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return copied(&unstructured.Unstructured{Object: managedfields.With(u.Object, nil)})
	}
	obj = gostruct.Copy(obj)
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj.DeepCopyObject()
}

// copyLastApplied copies the last-applied annotation of after to obj, in place, or removes it from obj if after lacks
// it. If obj does not have the annotation, copyLastApplied does nothing.
func copyLastApplied(obj, after runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	annotations := accessor.GetAnnotations()
	if annotations[fieldmanager.LastAppliedAnnotation] == "" {
		return nil // the annotation is only updated, never added
	}
	from, err := meta.Accessor(after)
	if err != nil {
		return err
	}
	annotations = maps.Clone(annotations)
	delete(annotations, fieldmanager.LastAppliedAnnotation)
	if text, ok := from.GetAnnotations()[fieldmanager.LastAppliedAnnotation]; ok {
		annotations[fieldmanager.LastAppliedAnnotation] = text
	}
	accessor.SetAnnotations(annotations)
	return nil
}
