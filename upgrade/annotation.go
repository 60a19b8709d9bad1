package upgrade

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const annotation = lastapplied.Annotation

var annotationPath = fieldpath.NewPath("metadata", "annotations", annotation)

// withAnnotation returns the annotations of obj with the last-applied annotation for intent, in the JSON that kubectl
// writes. This JSON always has annotations, so withAnnotation sets the annotations of intent, even to an empty map.
func withAnnotation(obj runtime.Object, intent *unstructured.Unstructured) (map[string]string, error) {
	intent.SetAnnotations(labels.Merge(intent.GetAnnotations(), nil))
	text, err := lastapplied.Text(intent)
	if err != nil {
		return nil, fmt.Errorf("intent: %w", err)
	}
	before, err := lastapplied.AnnotationsOf(obj)
	if err != nil {
		return nil, err
	}
	annotations := labels.Merge(before, labels.Set{annotation: text})
	if size, ok := lastapplied.IsWithin(annotations); !ok {
		return nil, fmt.Errorf("metadata.annotations: expected at most %d bytes, got %d",
			limits.MaxAnnotations, size)
	}
	return annotations, nil
}

// addAnnotation returns the JSON Patch operation that adds the annotation to an object. annotations are the object's
// annotations, including the new one.
func addAnnotation(annotations map[string]string) map[string]any {
	if len(annotations) == 1 {
		return map[string]any{"op": "add", "path": "/metadata/annotations", "value": annotations}
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")
	return map[string]any{"op": "add", "path": path, "value": annotations[annotation]}
}
