package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
)

// Describe names the kind of a JSON value.
func Describe(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// ManagedFields returns metadata.managedFields; nil if there are none.
func ManagedFields(tree map[string]any) any {
	list, _ := managedfields.Of(tree)
	return list
}

// GVKOf returns the kind of an object; an error names the invalid field.
func GVKOf(tree map[string]any) (schema.GroupVersionKind, error) {
	apiVersion, err := Text(tree, "", "apiVersion")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kind, err := Text(tree, "", "kind")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, fmt.Errorf(
			".apiVersion: expected GROUP/VERSION or VERSION, got %q",
			apiVersion,
		)
	}
	return gv.WithKind(kind), nil
}

// Text returns a required string.
func Text(tree map[string]any, parent, name string) (string, error) {
	s, err := OptionalText(tree, parent, name)
	if err == nil && s == "" {
		err = fmt.Errorf("%s.%s: missing", parent, name)
	}
	return s, err
}

// OptionalText returns a string; "" if it is missing.
func OptionalText(tree map[string]any, parent, name string) (string, error) {
	v := tree[name]
	s, ok := v.(string)
	if v != nil && !ok {
		return "", fmt.Errorf("%s.%s: expected a string, got %s", parent, name, Describe(v))
	}
	return s, nil
}

// NameOf returns metadata.name; "" if it is missing.
func NameOf(tree map[string]any) string {
	metadata, _ := tree["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// TextAt returns a string of an object's metadata; "" if it is missing.
func TextAt(tree map[string]any, name string) string {
	metadata, _ := tree["metadata"].(map[string]any)
	s, _ := metadata[name].(string)
	return s
}
