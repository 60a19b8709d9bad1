// Package gostruct converts Go structs to JSON trees and back, and compares them, because API servers hold objects as
// Go structs. It reads structs through accessors that it compiles once for each Go type, from its json tags.
//
//	tree, err := gostruct.Tree(pod)             // the whole object as maps and lists
//	before, after, err := gostruct.Diff(t, a, b) // the parts of two objects that differ
//	fields, ok := gostruct.Added(t, empty, pod, nil, nil) // the FieldsV1 of what a create adds
//	err := gostruct.Decode(tree, pod)           // a tree as a struct
//
// The JSON value of a Go value is the result of runtime.DefaultUnstructuredConverter.ToUnstructured. Where that differs
// from encoding/json, servers store the result of ToUnstructured, so this package does the same:
//
//   - If several fields of a struct and of its embedded structs have the same name, the last field in source order that
//     is not omitted is used. encoding/json uses the shallowest field.
//   - The option ",string" has no effect, and encoding.TextMarshaler is not called.
//   - A field of kind string, bool or number is its plain value, even if its type has a MarshalJSON method. In a list,
//     in a map or behind a pointer, the method is called.
//   - A field named "-" is omitted, even with a comma: `json:"-,"`.
//   - Floats stay floats: a float32 is widened, not parsed from its shortest decimal, and a whole float64 does not
//     become an int64. Numbers are compared by value.
//   - A uint64 beyond int64, an array, and a map whose keys do not have kind string have no JSON value.
//
// ToUnstructured panics, leaks or fails for some types and values, so no API server can use them. For such types and
// values, this package does the same as encoding/json. Unexported fields are omitted. A nil interface, or a nil pointer
// whose type has MarshalJSON, is null. If MarshalJSON needs a pointer, the address of a copy is used. Embedded types
// that are not plain structs have no JSON value.
//
// Trees in a Go value, such as the content of an unstructured object, are shared; everything else is copied. No
// function recurses deeper than limits.MaxDepth, so that cyclic pointers result in an error.
package gostruct
