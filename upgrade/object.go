package upgrade

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// object is an object in its Go type, and as a tree that is never changed.
type object struct {
	given runtime.Object
	tree  map[string]any
}

// read returns obj as a tree: an unstructured object's own, or the one of a Go struct. It rejects values that are not
// JSON or exceed the limits (spec rules 12.1 and 12.2).
func read(obj runtime.Object) (object, error) {
	v := reflect.ValueOf(obj)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return object{}, fmt.Errorf("expected an object, got a nil %T", obj)
	}
	var tree map[string]any
	if u, ok := obj.(runtime.Unstructured); ok {
		tree = u.UnstructuredContent()
	} else {
		var err error
		if tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return object{}, fmt.Errorf("%T: %w", obj, err)
		}
	}
	if err := typed.Deduced().Validate(tree, typed.Rules{}); err != nil {
		return object{}, err
	}
	o := object{obj, tree}
	for _, name := range []string{"apiVersion", "kind"} {
		if s, _ := tree[name].(string); s == "" {
			return object{}, fmt.Errorf("%s: expected a string, got %v", name, tree[name])
		}
	}
	if _, err := schema.ParseGroupVersion(o.version()); err != nil {
		return object{}, fmt.Errorf("apiVersion: %w", err)
	}
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok && tree["metadata"] != nil {
		return object{}, fmt.Errorf("metadata: expected a map, got %T", tree["metadata"])
	}
	if _, ok := metadata["annotations"].(map[string]any); !ok && metadata["annotations"] != nil {
		return object{}, fmt.Errorf("metadata.annotations: expected a map, got %T", metadata["annotations"])
	}
	return o, nil
}

func (o object) version() string { s, _ := o.tree["apiVersion"].(string); return s }
func (o object) kind() string    { s, _ := o.tree["kind"].(string); return s }

func (o object) metadata() map[string]any {
	m, _ := o.tree["metadata"].(map[string]any)
	return m
}

func (o object) annotations() map[string]any {
	m, _ := o.metadata()["annotations"].(map[string]any)
	return m
}

// meta returns a string of the metadata, or "".
func (o object) meta(name string) string {
	s, _ := o.metadata()[name].(string)
	return s
}

// at returns the group, version and kind of o at a version.
func (o object) at(version string) schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return schema.GroupVersionKind{} // which is in no types
	}
	return gv.WithKind(o.kind())
}

// with returns o with the fields of set in its metadata. It shares everything else.
func (o object) with(set map[string]any) (object, error) {
	metadata := maps.Clone(o.metadata())
	if metadata == nil {
		metadata = map[string]any{}
	}
	maps.Copy(metadata, set)
	tree := maps.Clone(o.tree)
	tree["metadata"] = metadata
	if _, ok := o.given.(runtime.Unstructured); ok {
		return object{&unstructured.Unstructured{Object: tree}, tree}, nil
	}
	out := reflect.New(reflect.TypeOf(o.given).Elem()).Interface().(runtime.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out); err != nil {
		return object{}, fmt.Errorf("%T: %w", o.given, err)
	}
	return object{out, tree}, nil
}
