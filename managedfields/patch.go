package managedfields

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
)

// ErrNoResourceVersion reports that an object has no resourceVersion: a patch without one might undo the writes of
// others.
var ErrNoResourceVersion = errors.New("the object has no resourceVersion")

// JSONPatch returns a JSON Patch (RFC 6902) that sets the managed fields of live, a stored object, to the entries of l,
// after operations. Send it with the content type application/json-patch+json. It sorts l.
//
// The patch sets the resourceVersion to live's, so a server responds with 409 Conflict if the object was written
// since, and clients retry. (A failed test operation would be a 422.) The error is [ErrNoResourceVersion] if live has
// none.
func (l Entries) JSONPatch(live runtime.Object, operations ...map[string]any) ([]byte, error) {
	accessor, err := gostruct.Accessor(live)
	if err != nil {
		return nil, err
	}
	version := accessor.GetResourceVersion()
	if version == "" {
		return nil, ErrNoResourceVersion
	}
	entries := map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": l.inOrder()}
	if len(accessor.GetManagedFields()) == 0 {
		entries["op"] = "add" // replace fails for a member that does not exist
	}
	if len(l) == 0 {
		// An empty list has the same meaning, but looks like a mistake.
		entries["value"] = []map[string]any{{}}
	}
	operations = append(operations, entries,
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": version})
	b, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return b, nil
}

// inOrder returns the sorted entries in the field order of the API's JSON. A malformed entry remains a map.
func (l Entries) inOrder() []any {
	l.Sort()
	out := make([]any, len(l))
	for i := range l {
		var e metav1.ManagedFieldsEntry
		switch tree := l[i].asTree; {
		case tree == nil:
			out[i] = l[i].encode()
		case runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, &e, true) == nil:
			out[i] = e
		default:
			out[i] = tree
		}
	}
	return out
}
