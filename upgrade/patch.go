package upgrade

import (
	"encoding/json"
	"fmt"
	"strings"
)

// operation is one of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch returns the JSON Patch that gives o the managed fields of list, and the
// annotation text unless it is nil. It replaces the resourceVersion rather than to
// test it: a failed test is a bad request to a server, another resourceVersion a
// conflict, after which clients try again. It is nil when o has none.
func (o object) patch(text *string, list []any) ([]byte, error) {
	version := o.meta("resourceVersion")
	if version == "" {
		return nil, nil
	}
	var operations []operation
	switch {
	case text == nil:
	case o.annotations() == nil:
		operations = append(operations, operation{"add", "/metadata/annotations", map[string]any{annotation: *text}})
	default:
		pointer := strings.NewReplacer("~", "~0", "/", "~1").Replace(annotation)
		operations = append(operations, operation{"add", "/metadata/annotations/" + pointer, *text})
	}
	operations = append(operations,
		operation{"replace", "/metadata/managedFields", list},
		operation{"replace", "/metadata/resourceVersion", version})
	b, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return b, nil
}
