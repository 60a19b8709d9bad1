package engine

import (
	"maps"
	"time"
)

// WithoutManagedFields calls f with the managed fields of obj, an unstructured object, set
// aside, and gives obj these managed fields afterwards. It is for functions that read and write
// an object's metadata through Go structs: they encode and decode every FieldsV1 twice, and
// what comes out is what went in. obj has its own metadata back when f fails.
//
// It only calls f in other modes than Tenure, and where a Go struct would not keep the managed
// fields as they are.
func WithoutManagedFields(obj map[string]any, f func() error) error {
	if !answers() {
		return f()
	}
	return withoutManagedFields(obj, f)
}

func withoutManagedFields(obj map[string]any, f func() error) error {
	metadata, _ := obj["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	if !isKeptByStructs(entries) {
		return f()
	}
	rest := maps.Clone(metadata) // somebody else may hold it
	delete(rest, "managedFields")
	obj["metadata"] = rest
	if err := f(); err != nil {
		obj["metadata"] = metadata
		return err
	}
	if now, ok := obj["metadata"].(map[string]any); ok {
		now["managedFields"] = entries
	}
	return nil
}

// isKeptByStructs reports whether entries that are decoded into a Go struct and encoded again
// are as they were.
func isKeptByStructs(entries []any) bool {
	for _, item := range entries {
		entry, ok := item.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range entry {
			if key == "fieldsV1" {
				ok = isMapOfMaps(value, maxDepth)
			} else {
				ok = isKeptText(key, value)
			}
			if !ok {
				return false
			}
		}
	}
	return len(entries) > 0
}

// isKeptText reports whether a field of an entry, other than fieldsV1, is as it was after it was decoded into a Go
// struct and encoded again.
func isKeptText(key string, value any) bool {
	text, _ := value.(string)
	switch key {
	case "manager", "operation", "apiVersion", "fieldsType", "subresource":
		return text != ""
	case "time":
		written, err := time.Parse(time.RFC3339, text)
		return err == nil && !written.IsZero() && text == written.UTC().Format(time.RFC3339)
	}
	return false
}

// isMapOfMaps reports whether v has no other values than maps, at most depth levels of them.
func isMapOfMaps(v any, depth int) bool {
	m, ok := v.(map[string]any)
	if !ok || m == nil || depth == 0 {
		return false
	}
	for _, below := range m {
		if !isMapOfMaps(below, depth-1) {
			return false
		}
	}
	return true
}
