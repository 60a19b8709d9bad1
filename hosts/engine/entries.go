package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/plain"
)

// ReadEntries returns the managed fields of an unstructured object as Go structs. It is a fast replacement for
// GetManagedFields, which encodes every FieldsV1 by reflection. Request handlers call GetManagedFields six times for
// one update of a custom resource. ok is false in modes other than Tenure, and for an empty list. It is also false if
// the result might differ from the result of GetManagedFields: for entries that no server wrote, and for FieldsV1 with
// keys that are not plain ASCII. Except for strings, the result shares no memory with list.
func ReadEntries(list []any) (entries []metav1.ManagedFieldsEntry, ok bool) {
	if !answers() {
		return nil, false
	}
	return readEntries(list)
}

func readEntries(list []any) (entries []metav1.ManagedFieldsEntry, ok bool) {
	if !isKeptByStructs(list) {
		return nil, false
	}
	entries = make([]metav1.ManagedFieldsEntry, len(list))
	for i, item := range list {
		for key, value := range item.(map[string]any) {
			if key != "fieldsV1" {
				setText(&entries[i], key, value.(string))
				continue
			}
			text, ok := appendFields(nil, value.(map[string]any))
			if !ok {
				return nil, false
			}
			entries[i].FieldsV1 = new(metav1.FieldsV1)
			entries[i].FieldsV1.SetRawBytes(text)
		}
	}
	return entries, true
}

// setText sets a field of an entry to a text. [isKeptText] must be true for key and text.
func setText(e *metav1.ManagedFieldsEntry, key, text string) {
	switch key {
	case "manager":
		e.Manager = text
	case "operation":
		e.Operation = metav1.ManagedFieldsOperationType(text)
	case "apiVersion":
		e.APIVersion = text
	case "fieldsType":
		e.FieldsType = text
	case "subresource":
		e.Subresource = text
	case "time":
		written, _ := time.Parse(time.RFC3339, text)
		e.Time = &metav1.Time{Time: written.Local()}
	}
}

// appendFields appends the encoding of a FieldsV1 as package encoding/json writes it. [isMapOfMaps] must be true for
// fields. It returns false if a key has control characters, non-ASCII characters, <, > or &, because encoding/json may
// escape them.
func appendFields(b []byte, fields map[string]any) ([]byte, bool) {
	isOdd := func(c rune) bool { return c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' }
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(fields)) {
		if strings.ContainsFunc(key, isOdd) {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(plain.AppendEscaped(append(b, '"'), key, true), `":`...)
		var ok bool
		if b, ok = appendFields(b, fields[key].(map[string]any)); !ok {
			return nil, false
		}
	}
	return append(b, '}'), true
}
