package upgrade

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const annotation = lastapplied.Annotation

var annotationPath = fieldpath.Fields("metadata", "annotations", annotation)

// annotationsOf returns the annotations of obj. Malformed ones are an error, and not none, because without the
// annotation of client-side apply every field moves.
func annotationsOf(obj runtime.Object) (map[string]string, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		out, _, err := unstructured.NestedStringMap(u.UnstructuredContent(), "metadata", "annotations")
		return out, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return accessor.GetAnnotations(), nil
}

// lastApplied returns the intent that client-side apply stored in obj; nil if there is none. kubectl and servers ignore
// an empty annotation.
func lastApplied(obj runtime.Object) (*unstructured.Unstructured, error) {
	annotations, err := annotationsOf(obj)
	if err != nil || annotations[annotation] == "" {
		return nil, err
	}
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(annotations[annotation]), &tree); err != nil {
		return nil, annotationError(err)
	}
	return &unstructured.Unstructured{Object: tree}, nil
}

func annotationError(err error) error { return fmt.Errorf("annotation %s: %w", annotation, err) }

// annotated returns obj with the annotation of a client-side apply of intent, and the annotation: the JSON that kubectl
// writes, which always has annotations.
func annotated(obj runtime.Object, intent *unstructured.Unstructured) (runtime.Object, string, error) {
	intent = copyOf(intent).(*unstructured.Unstructured)
	if intent.GetAnnotations() == nil {
		intent.SetAnnotations(map[string]string{})
	}
	text, err := lastapplied.Text(intent)
	if err != nil {
		return nil, "", fmt.Errorf("intent: %w", err)
	}
	annotations, err := annotationsOf(obj)
	if err != nil {
		return nil, "", err
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = text
	if size, ok := lastapplied.IsWithin(annotations); !ok {
		return nil, "", fmt.Errorf("metadata.annotations: expected at most %d bytes, got %d",
			limits.MaxAnnotations, size)
	}
	obj = copyOf(obj)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, "", err
	}
	accessor.SetAnnotations(annotations)
	return obj, text, nil
}

// copyOf returns a copy of an object. Unlike DeepCopyObject it does not panic for Go types such as int, which are common in
// unstructured objects that a program builds.
func copyOf(obj runtime.Object) runtime.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		tree, _ := trees.Copy(u.Object).(map[string]any)
		return &unstructured.Unstructured{Object: tree}
	}
	return obj.DeepCopyObject()
}
