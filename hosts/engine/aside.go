package engine

import (
	"maps"
	"time"
)

// WithoutManagedFields removes the managed fields from obj, an unstructured object, calls f, and then restores the
// managed fields. It is for functions that read and write the metadata of obj through Go structs. With managed fields,
// such a function would decode and encode every FieldsV1 twice, without changing it. If f fails, obj gets back its
// original metadata.
//
// In modes other than Tenure, and if a Go struct would change the managed fields, WithoutManagedFields only calls f.
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
	rest := maps.Clone(metadata) // the map may be shared
	delete(rest, "managedFields")
	obj["metadata"] = rest
	if err := f(); err != nil {
		obj["metadata"] = metadata
		return err
	}
	if current, ok := obj["metadata"].(map[string]any); ok {
		current["managedFields"] = entries
	}
	return nil
}

// isKeptByStructs reports whether decoding entries into Go structs and encoding them again does not change them.
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

// isKeptText reports whether decoding a field of an entry, other than fieldsV1, into a Go struct and encoding it
// again does not change it.
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

// isMapOfMaps reports whether v consists only of maps, nested at most depth levels deep.
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
