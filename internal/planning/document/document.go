// Package document defines the documents of inputs, and has functions that read the fields that identify an object.
package document

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/managedfields"
)

// Document is one object of an input, or an error for input that could not be read.
type Document struct {
	Source string // file as the user named it; empty if the error names the file
	Tree   map[string]any
	Err    error
	packed []byte // the whole tree in JSON; see Packed
}

// Packed returns the document in a form that needs a tenth of the memory: Tree has only the identifying fields.
// [Document.Unpacked] returns the complete document.
func (d Document) Packed() Document {
	if d.Tree == nil || d.packed != nil {
		return d
	}
	data, err := json.Marshal(d.Tree)
	if err != nil {
		return d
	}
	d.packed = data
	tree := map[string]any{"apiVersion": d.Tree["apiVersion"], "kind": d.Tree["kind"], "metadata": d.Tree["metadata"]}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		tree["metadata"] = map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]}
	}
	d.Tree = tree
	return d
}

// Unpacked returns the document with its complete tree.
func (d Document) Unpacked() Document {
	if d.packed != nil {
		d.Tree, d.Err = Decode(d.packed)
		d.packed = nil
	}
	return d
}

// Decode decodes the JSON of an object, with integers as int64.
func Decode(data []byte) (tree map[string]any, err error) {
	err = utiljson.Unmarshal(data, &tree)
	return tree, err
}

// Wrap adds the source of the document to an error.
func (d *Document) Wrap(err error) error {
	if err == nil || d.Source == "" {
		return err
	}
	return fmt.Errorf("%s: %w", d.Source, err)
}

// Flatten appends an object to out. If the object is a list, Flatten appends the items of the list instead. It appends
// errors to errs. path is the path of the object in the source, for errors.
func Flatten(
	source, path string, object runtime.Object, out []Document, errs []error,
) ([]Document, []error) {
	tree, _ := object.(runtime.Unstructured)
	if tree == nil || !tree.IsList() {
		return append(out, Document{Source: source, Tree: tree.UnstructuredContent()}), errs
	}
	i := 0
	err := tree.EachListItem(func(item runtime.Object) error {
		itemPath := fmt.Sprintf("%s.items[%d]", path, i)
		i++
		if item.GetObjectKind().GroupVersionKind().Kind == "" {
			errs = append(errs, fmt.Errorf("%s: %s.kind: missing", source, itemPath))
			return nil
		}
		out, errs = Flatten(source, itemPath, item, out, errs)
		return nil
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: %s.items: expected objects", source, path))
	}
	return out, errs
}

// Input is a file or folder with its documents.
type Input struct {
	Name      string
	Documents []Document
}

// Describe returns the name of a JSON value's type, for messages.
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

// GVKOf returns the kind of an object. Its error names the invalid field.
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
		return schema.GroupVersionKind{}, fmt.Errorf(".apiVersion: expected GROUP/VERSION or VERSION, got %q", apiVersion)
	}
	return gv.WithKind(kind), nil
}

// Text returns a string field that is required.
func Text(tree map[string]any, parent, name string) (string, error) {
	s, err := OptionalText(tree, parent, name)
	if err == nil && s == "" {
		err = fmt.Errorf("%s.%s: missing", parent, name)
	}
	return s, err
}

// OptionalText returns a string field; "" if it is missing.
func OptionalText(tree map[string]any, parent, name string) (string, error) {
	v := tree[name]
	s, ok := v.(string)
	if v != nil && !ok {
		return "", fmt.Errorf("%s.%s: expected a string, got %s", parent, name, Describe(v))
	}
	return s, nil
}

// NameOf returns metadata.name; "" if it is missing.
func NameOf(tree map[string]any) string { return TextAt(tree, "name") }

// TextAt returns a string field of an object's metadata; "" if it is missing.
func TextAt(tree map[string]any, name string) string {
	metadata, _ := tree["metadata"].(map[string]any)
	s, _ := metadata[name].(string)
	return s
}

// Reference returns the name of an object as kubectl prints it: deployment.apps/nginx.
func Reference(gk schema.GroupKind, name string) string {
	return Resource(gk) + "/" + name
}

// Resource returns the name of a kind as kubectl prints it: deployment.apps.
func Resource(gk schema.GroupKind) string {
	if gk.Group == "" {
		return strings.ToLower(gk.Kind)
	}
	return strings.ToLower(gk.Kind) + "." + gk.Group
}
