package managedfields

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

// Into returns obj, an unstructured object or a Go struct, with the entries of l. The result shares everything else
// with obj. Into sorts l in place.
func (l Entries) Into(obj runtime.Object) (runtime.Object, error) {
	if u, ok := obj.(runtime.Unstructured); ok && !gostruct.IsNil(obj) {
		return &unstructured.Unstructured{Object: With(u.UnstructuredContent(), l.EncodeTree())}, nil
	}
	return withStructs(obj, l.Encode())
}

// Copy returns obj with the managed fields of from, even if they are malformed. The result shares everything else with
// obj. Each of obj and from may be unstructured or a Go struct.
func Copy(obj, from runtime.Object) (runtime.Object, error) {
	if into, ok := obj.(runtime.Unstructured); ok && !gostruct.IsNil(obj) {
		list, err := listOf(from)
		if err != nil {
			return nil, err
		}
		if accessor, err := gostruct.Accessor(from); err == nil && list == nil && accessor.GetManagedFields() != nil {
			list = []any{} // an empty list in a Go struct is a request to reset managed fields
		}
		return &unstructured.Unstructured{Object: With(into.UnstructuredContent(), list)}, nil
	}
	list, err := structsOf(from)
	if err != nil {
		return nil, err
	}
	return withStructs(obj, list)
}

// structsOf returns the managed fields of an object as Go structs.
func structsOf(obj runtime.Object) ([]metav1.ManagedFieldsEntry, error) {
	u, ok := obj.(runtime.Unstructured)
	if !ok || gostruct.IsNil(obj) {
		accessor, err := gostruct.Accessor(obj)
		if err != nil {
			return nil, err
		}
		return accessor.GetManagedFields(), nil
	}
	if l, err := Read(obj); err == nil {
		return l.Encode(), nil
	}
	// Malformed entries are copied unchanged.
	list, _ := Of(u.UnstructuredContent())
	var holder metav1.ObjectMeta
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"managedFields": list}, &holder)
	return holder.ManagedFields, err
}

func withStructs(obj runtime.Object, list []metav1.ManagedFieldsEntry) (runtime.Object, error) {
	if _, err := gostruct.Accessor(obj); err != nil {
		return nil, err
	}
	out := gostruct.Copy(obj)
	accessor, err := gostruct.Accessor(out)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(list)
	return out, nil
}

// Equal reports whether two objects have the same managed fields in the same order. If ignoreTimes is true, the times
// of entries may differ.
func Equal(a, b runtime.Object, ignoreTimes bool) bool {
	x, err1 := listOf(a)
	y, err2 := listOf(b)
	same := typed.Equal
	if ignoreTimes {
		same = func(a, b any) bool { return typed.Equal(timeless(a), timeless(b)) }
	}
	return err1 == nil && err2 == nil && (x == nil) == (y == nil) && slices.EqualFunc(x, y, same)
}

// listOf returns the managed fields of an object in the form of an unstructured object. It returns nil if the object
// has no list. For a Go struct with an empty list, it also returns nil, because the JSON of the struct has no list.
func listOf(obj runtime.Object) ([]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok && !gostruct.IsNil(obj) {
		v, _ := Of(u.UnstructuredContent())
		list, _ := v.([]any)
		return list, nil
	}
	entries, err := structsOf(obj)
	if err != nil {
		return nil, err
	}
	tree, err := gostruct.Tree(&metav1.ObjectMeta{ManagedFields: entries})
	list, _ := tree["managedFields"].([]any)
	return list, err
}

// timeless returns an entry without its time.
func timeless(entry any) any {
	if m, ok := entry.(map[string]any); ok {
		m = maps.Clone(m)
		delete(m, "time")
		return m
	}
	return entry
}

// Of returns the managed fields of an unstructured object, whatever their type. ok is true if metadata has the member
// managedFields, even with the value null or [].
func Of(tree map[string]any) (list any, ok bool) {
	metadata, _ := tree["metadata"].(map[string]any)
	list, ok = metadata["managedFields"]
	return list, ok
}

// With returns tree, an unstructured object, with list as its managed fields. list has the form that
// [Entries.EncodeTree] returns; if it is nil, the result has no managed fields. The root and metadata of the result are
// new maps; everything in them is shared with tree and list. With returns tree itself if nothing changes, or if
// metadata is not a map.
func With(tree map[string]any, list any) map[string]any {
	if items, ok := list.([]any); ok && items == nil {
		list = nil
	}
	metadata, ok := tree["metadata"].(map[string]any)
	if _, exists := metadata["managedFields"]; !exists && list == nil || !ok && tree["metadata"] != nil {
		return tree
	}
	out := make(map[string]any, len(tree)+1)
	maps.Copy(out, tree)
	copied := make(map[string]any, len(metadata)+1)
	maps.Copy(copied, metadata)
	if list == nil {
		delete(copied, "managedFields")
	} else {
		copied["managedFields"] = list
	}
	out["metadata"] = copied
	return out
}
