package upgrade

import (
	"errors"
	"strings"

	"github.com/tenure-ssa/tenure/managedfields"
)

// patch returns the JSON Patch that sets the entries of o to l, and its annotation to text unless that is nil. It is
// nil if o has no resourceVersion.
func (o object) patch(text *string, l managedfields.Entries) ([]byte, error) {
	var operations []map[string]any
	switch {
	case text == nil:
	case o.annotations() == nil:
		operations = append(operations, map[string]any{
			"op": "add", "path": "/metadata/annotations", "value": map[string]any{annotation: *text},
		})
	default:
		pointer := strings.NewReplacer("~", "~0", "/", "~1").Replace(annotation)
		operations = append(operations, map[string]any{
			"op": "add", "path": "/metadata/annotations/" + pointer, "value": *text,
		})
	}
	patch, err := l.JSONPatch(o.given, operations...)
	if errors.Is(err, managedfields.ErrNoResourceVersion) {
		return nil, nil
	}
	return patch, err
}
