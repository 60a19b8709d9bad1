package dropin

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// entriesOf returns the managed fields of obj, as they stand in a tree. An empty
// list that is there is not nil.
func entriesOf(obj runtime.Object) (any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		list, _ := managedfields.Of(u.UnstructuredContent())
		return list, nil
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	switch list := accessor.GetManagedFields(); {
	case list == nil:
		return nil, nil
	case len(list) == 0:
		return []any{}, nil
	default:
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&metav1.ObjectMeta{ManagedFields: list})
		return tree["managedFields"], err
	}
}

// withEntries returns obj with the managed fields that stand in a tree. obj stays
// as it is; the result shares its other fields.
func withEntries(obj runtime.Object, list any) (runtime.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: managedfields.With(u.Object, list)}, nil
	}
	entries, err := entriesFrom(list)
	if err != nil {
		return nil, err
	}
	out := shallow(obj)
	accessor, err := meta.Accessor(out)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(entries)
	return out, nil
}

// entriesFrom returns the Go structs of managed fields that stand in a tree.
func entriesFrom(list any) ([]metav1.ManagedFieldsEntry, error) {
	items, _ := list.([]any)
	if len(items) == 0 {
		return nil, nil
	}
	if decoded, err := managedfields.DecodeTree(items); err == nil {
		return managedfields.Encode(decoded), nil
	}
	// They were kept although they make no sense, and stay as they are.
	var holder metav1.ObjectMeta
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"managedFields": items}, &holder)
	return holder.ManagedFields, err
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

// shallow returns a copy of obj whose metadata can be set without changing obj's.
func shallow(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj)
	from, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return obj.DeepCopyObject()
	}
	p := reflect.New(v.Type().Elem())
	p.Elem().Set(v.Elem())
	to := p.Interface().(metav1.ObjectMetaAccessor)
	if from.GetObjectMeta() == to.GetObjectMeta() {
		return obj.DeepCopyObject() // it holds its metadata by a pointer
	}
	return to.(runtime.Object)
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
