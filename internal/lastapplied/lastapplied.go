// Package lastapplied reads and writes the annotation in which client-side apply stores its last applied intent.
package lastapplied

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// Annotation is the name of the annotation.
const Annotation = "kubectl.kubernetes.io/last-applied-configuration"

// Manager is the manager whose applies change the annotation: the default manager of kubectl apply --server-side.
const Manager = "kubectl"

// AnnotationsOf returns the annotations of obj. Malformed annotations are an error, because otherwise the annotation of
// client-side apply would seem to be missing.
func AnnotationsOf(obj runtime.Object) (map[string]string, error) {
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

// Intent returns the intent that client-side apply stored in obj; nil if there is none. Both kubectl and servers ignore
// an empty annotation.
func Intent(obj runtime.Object) (*unstructured.Unstructured, error) {
	annotations, err := AnnotationsOf(obj)
	if err != nil || annotations[Annotation] == "" {
		return nil, err
	}
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(annotations[Annotation]), &tree); err != nil {
		return nil, Error(err)
	}
	return &unstructured.Unstructured{Object: tree}, nil
}

// Error returns an error about the annotation.
func Error(err error) error { return fmt.Errorf("annotation %s: %w", Annotation, err) }

// Text returns the annotation for intent: its JSON without the annotation itself, in one line that ends with a newline.
// It changes intent. The fields of a Go struct are in the order of the struct.
func Text(intent runtime.Object) (string, error) {
	if accessor, err := meta.Accessor(intent); err == nil {
		annotations := accessor.GetAnnotations()
		delete(annotations, Annotation)
		accessor.SetAnnotations(annotations)
	}
	b, err := json.Marshal(intent)
	return string(b) + "\n", err
}

// IsWithin reports whether a server accepts these annotations. size is their total size in bytes.
func IsWithin(annotations map[string]string) (size int, ok bool) {
	for name, text := range annotations {
		size += len(name) + len(text)
	}
	return size, size <= limits.MaxAnnotations
}
