// Package lastapplied writes the annotation in which client-side apply stores its last applied intent.
package lastapplied

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// Annotation is the name of the annotation.
const Annotation = "kubectl.kubernetes.io/last-applied-configuration"

// Manager is the manager whose applies change the annotation: the default manager of kubectl apply --server-side.
const Manager = "kubectl"

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
