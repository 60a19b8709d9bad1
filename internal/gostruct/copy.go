package gostruct

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Copy returns a copy of a Go struct with metadata of its own, which shares all else
// with it. Where that can't be had, it is a deep copy.
func Copy(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return obj.DeepCopyObject()
	}
	copied := reflect.New(v.Elem().Type())
	copied.Elem().Set(v.Elem())
	out := copied.Interface().(runtime.Object)
	if SharesMetadata(obj, out) {
		return obj.DeepCopyObject()
	}
	return out
}

// SharesMetadata reports whether two objects have one metadata, or may have: a Go struct
// may hold it by a pointer.
func SharesMetadata(a, b runtime.Object) bool {
	x, y := metadataAt(a), metadataAt(b)
	return x == 0 || y == 0 || x == y
}

// metadataAt returns where the metadata of a Go struct is in memory; 0 if that
// can't be told.
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
