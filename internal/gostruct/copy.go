package gostruct

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Copy returns a copy of a Go struct that has its own metadata and shares everything else. If that is impossible, it
// is a deep copy.
func Copy(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return obj.DeepCopyObject()
	}
	copied := reflect.New(v.Elem().Type())
	copied.Elem().Set(v.Elem())
	out := copied.Interface().(runtime.Object)
	if at := metadataAt(obj); at == 0 || at == metadataAt(out) { // it may be behind a pointer
		return obj.DeepCopyObject()
	}
	return out
}

// metadataAt returns the address of the metadata of a Go struct; 0 if it is unknown.
func metadataAt(obj runtime.Object) uintptr {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return 0
	}
	v := reflect.ValueOf(accessor.GetObjectMeta())
	if v.Kind() != reflect.Pointer {
		return 0
	}
	return v.Pointer()
}

// ObjectLike returns tree as an object of the Go type of obj; unstructured if that is unstructured or nil.
func ObjectLike(obj runtime.Object, tree map[string]any) (runtime.Object, error) {
	if _, ok := obj.(runtime.Unstructured); ok || obj == nil {
		return &unstructured.Unstructured{Object: tree}, nil
	}
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	if err := Decode(tree, out); err != nil {
		return nil, fmt.Errorf("%T: %w", obj, err)
	}
	return out, nil
}
