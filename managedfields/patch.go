package managedfields

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
)

// ErrNoResourceVersion means that an object has no resourceVersion. A patch without a resourceVersion could undo writes
// of other clients.
var ErrNoResourceVersion = errors.New("the object has no resourceVersion")

// JSONPatch returns a JSON Patch (RFC 6902) for live, a stored object. The patch first performs the given operations,
// and then sets the managed fields to the entries of l. Send it with the content type application/json-patch+json.
// JSONPatch sorts l in place.
//
// The patch sets the resourceVersion to live's. If the object has been written since, a server therefore responds with
// 409 Conflict, after which clients retry. (If the patch tested the resourceVersion instead, the response would be
// 422.) If live has no resourceVersion, the error is [ErrNoResourceVersion].
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
		entries["op"] = "add" // replace fails if the member does not exist
	}
	if len(l) == 0 {
		// One empty entry clears the managed fields. An empty list would clear them, too, but looks like a mistake.
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

// inOrder returns the sorted entries with members in the order of the API's JSON. A malformed entry remains a map.
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
