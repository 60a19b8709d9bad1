package gostruct

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Tree returns the JSON value of obj, a pointer to a struct or an object with unstructured content, as a plain tree.
// The maps and lists of the tree are new, but plain trees inside the Go value and unstructured content are shared.
// except is the path of a field that is omitted and not read. If a value has no JSON value, the error is a
// *[typed.Error] with its path.
func Tree(obj any, except ...string) (map[string]any, error) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok && !IsNil(obj) {
		return u.UnstructuredContent(), nil
	}
	v, err := structOf(obj)
	if err != nil {
		return nil, err
	}
	out, err := tree(formOf(v.Type()), v, except, 0)
	if err != nil {
		return nil, err
	}
	object, ok := out.(map[string]any)
	if !ok { // it has its own MarshalJSON
		return nil, fmt.Errorf("%T: expected a map, got %T", obj, out)
	}
	return object, nil
}

// IsNil reports whether obj is nil or a nil pointer.
func IsNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || isNil(v)
}

// Accessor returns the metadata of an object. The error names the object's Go type.
func Accessor(obj any) (metav1.Object, error) {
	if IsNil(obj) {
		return nil, fmt.Errorf("expected an object, got a nil %T", obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", obj, err)
	}
	return accessor, nil
}

// structOf returns the struct that obj points to.
func structOf(obj any) (reflect.Value, error) {
	v := reflect.ValueOf(obj)
	switch {
	case IsNil(obj):
		return v, fmt.Errorf("expected an object, got a nil %T", obj)
	case v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct:
		return v, fmt.Errorf("expected a pointer to a struct, got a %T", obj)
	}
	return v.Elem(), nil
}

// below returns the rest of the path in except, if this path begins with name. isExcept reports whether nothing is
// left, so that the path is the path of the entry called name.
func below(except []string, name string) (rest []string, isExcept bool) {
	if len(except) == 0 || except[0] != name {
		return nil, false
	}
	return except[1:], len(except) == 1
}

func tree(f *form, v reflect.Value, except []string, depth int) (any, error) {
	if depth > limits.MaxDepth {
		return nil, errTooDeep
	}
	switch f, v = indirect(f, v); f.kind {
	case structKind:
		return structTree(f, v, except, depth)
	case mapKind:
		return mapTree(f, v, depth)
	case listKind:
		return listTree(f, v, depth)
	}
	return f.scalar(v)
}

func structTree(f *form, v reflect.Value, except []string, depth int) (any, error) {
	// Counting first costs less than a map that is too large or must grow.
	n := 0
	for _, field := range f.fields {
		if _, _, ok := field.in(v); ok {
			n++
		}
	}
	out := make(map[string]any, n)
	for _, field := range f.fields {
		fv, ff, ok := field.in(v)
		if !ok {
			continue
		}
		rest, isExcept := below(except, field.name)
		if isExcept {
			continue
		}
		value, err := tree(ff, fv, rest, depth+1)
		if err != nil {
			return nil, atField(field.name, err)
		}
		out[field.name] = value
	}
	return out, nil
}

func mapTree(f *form, v reflect.Value, depth int) (any, error) {
	out := make(map[string]any, v.Len())
	if texts, ok := v.Interface().(map[string]string); ok {
		for name, text := range texts {
			out[name] = text
		}
		return out, nil
	}
	// Each entry is copied to this variable, which is addressable.
	value := reflect.New(f.typ.Elem()).Elem()
	var failed entryError
	for it := v.MapRange(); it.Next(); {
		name := it.Key().String()
		value.SetIterValue(it)
		entry, err := tree(f.elem, value, nil, depth+1)
		if failed.add(name, err) {
			break
		}
		out[name] = entry
	}
	return out, failed.err
}

func listTree(f *form, v reflect.Value, depth int) (any, error) {
	out := make([]any, v.Len())
	for i := range out {
		item, err := tree(f.elem, v.Index(i), nil, depth+1)
		if err != nil {
			return nil, at(fieldpath.IndexElement(i), err)
		}
		out[i] = item
	}
	return out, nil
}

// Copy returns a copy of a Go struct. The copy has its own metadata, and shares everything else with the struct. If
// that is impossible, Copy returns a deep copy.
func Copy(obj runtime.Object) runtime.Object {
	if v, err := structOf(obj); err == nil {
		copied := reflect.New(v.Type())
		copied.Elem().Set(v)
		out := copied.Interface().(runtime.Object)
		if address := metadataAt(obj); address != 0 && address != metadataAt(out) { // metadata may be behind a pointer
			return out
		}
	}
	return obj.DeepCopyObject()
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

// ObjectLike returns tree as an object of obj's Go type; unstructured if obj is unstructured or nil.
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
