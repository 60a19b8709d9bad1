package managedfields

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrNoResourceVersion says that a patch could not be bound to an object that has
// no resourceVersion: it might undo what others did in the meantime.
var ErrNoResourceVersion = errors.New("the object has no resourceVersion")

// PatchOperation is one operation of a JSON Patch (RFC 6902).
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// JSONPatch returns the JSON Patch (RFC 6902) that does what operations say to the stored
// object live, and gives it the entries of l. It is to be sent with the content type
// application/json-patch+json. It sorts l.
//
// It replaces the resourceVersion by the one that live has: a server answers 409 when
// the object is another by now, after which clients try again. A failed test operation
// would be a 422. The error is [ErrNoResourceVersion] when live has none.
func (l List) JSONPatch(live runtime.Object, operations ...PatchOperation) ([]byte, error) {
	accessor, err := meta.Accessor(live)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", live, err)
	}
	version := accessor.GetResourceVersion()
	if version == "" {
		return nil, ErrNoResourceVersion
	}
	entries := PatchOperation{"replace", "/metadata/managedFields", l.inOrder()}
	if !hasEntries(live) {
		entries.Op = "add" // what is not there can't be replaced
	}
	if len(l) == 0 {
		// An empty list would be as good, but reads like one that was forgotten.
		entries.Value = []map[string]any{{}}
	}
	operations = append(operations, entries, PatchOperation{"replace", "/metadata/resourceVersion", version})
	b, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return b, nil
}

// hasEntries reports whether an object, as a server returns it, has managed fields.
func hasEntries(obj runtime.Object) bool {
	if u, ok := obj.(runtime.Unstructured); ok {
		_, ok := Of(u.UnstructuredContent())
		return ok
	}
	accessor, err := meta.Accessor(obj)
	return err == nil && len(accessor.GetManagedFields()) > 0
}

// inOrder returns the entries, sorted, as they are written to JSON with their fields in
// the order of the API. What is no such entry stays a map.
func (l List) inOrder() []any {
	l.Sort()
	out := make([]any, len(l))
	for i := range l {
		if l[i].asTree == nil {
			out[i] = l[i].encode()
			continue
		}
		var e metav1.ManagedFieldsEntry
		if runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(l[i].asTree, &e, true) == nil {
			out[i] = e
		} else {
			out[i] = l[i].asTree
		}
	}
	return out
}
