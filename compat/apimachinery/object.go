package apimachinery

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// treeOf returns obj as a tree. The tree of an unstructured object is obj's own,
// that of a Go struct is new.
func treeOf(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// carries reports whether obj has managed fields, be it an empty list.
func carries(obj runtime.Object) bool {
	if u, ok := obj.(runtime.Unstructured); ok {
		list, there := managedfields.Of(u.UnstructuredContent())
		return there && list != nil
	}
	accessor, err := meta.Accessor(obj)
	return err == nil && accessor.GetManagedFields() != nil
}

// copied returns a deep copy of obj. An unstructured object may hold any of Go's numbers;
// those of the copy are int64 and float64, so that a host can copy it in turn.
func copied(obj runtime.Object) runtime.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		out, _ := trees.Plain(u.Object).(map[string]any)
		return &unstructured.Unstructured{Object: out}
	}
	return obj.DeepCopyObject()
}

// same reports whether two trees are the same object, whatever their managed
// fields and, for the manager that keeps it, the annotation of client-side apply.
func same(a, b map[string]any, kubectl bool) bool {
	a, b = managedfields.With(a, nil), managedfields.With(b, nil)
	if kubectl {
		a, b = withoutLastApplied(a), withoutLastApplied(b)
	}
	return typed.Equal(a, b)
}

func withoutLastApplied(tree map[string]any) map[string]any {
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, ok := annotations[fieldmanager.LastAppliedAnnotation]; !ok {
		return tree
	}
	tree, metadata, annotations = maps.Clone(tree), maps.Clone(metadata), maps.Clone(annotations)
	delete(annotations, fieldmanager.LastAppliedAnnotation)
	metadata["annotations"], tree["metadata"] = annotations, metadata
	return tree
}

// copyLastApplied gives obj, which the caller owns, the annotation that tree has.
func copyLastApplied(obj runtime.Object, tree map[string]any) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	annotations := accessor.GetAnnotations()
	if annotations[fieldmanager.LastAppliedAnnotation] == "" {
		return nil // only what is there is kept up
	}
	text, there, err := unstructured.NestedString(tree, "metadata", "annotations", fieldmanager.LastAppliedAnnotation)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", fieldmanager.LastAppliedAnnotation, err)
	}
	annotations = maps.Clone(annotations)
	delete(annotations, fieldmanager.LastAppliedAnnotation)
	if there {
		annotations[fieldmanager.LastAppliedAnnotation] = text
	}
	accessor.SetAnnotations(annotations)
	return nil
}
