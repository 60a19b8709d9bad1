// Package gostruct converts Go structs to JSON trees and back, and compares them. API servers hold objects as Go
// structs. It reads them through accessors that are compiled once for each Go type, from its json tags.
//
//	tree, err := gostruct.Tree(pod)             // the whole object as maps and lists
//	before, after, err := gostruct.Diff(t, a, b) // the parts of two objects that differ
//	fields, ok := gostruct.Added(t, empty, pod, nil, nil) // the FieldsV1 of what a create adds
//	err := gostruct.Decode(tree, pod)           // a tree as a struct
//
// A value is what runtime.DefaultUnstructuredConverter.ToUnstructured makes of it. Where that differs from
// encoding/json, the objects that servers store are what ToUnstructured makes, so this package does the same:
//
//   - If several fields of a struct and of its embedded structs have the same name, it belongs to the last one that is
//     not omitted, in the order of the source; encoding/json takes the shallowest.
//   - The option ",string" does nothing, and encoding.TextMarshaler is not called.
//   - A field of a string, bool or number kind is its plain value although its type has a MarshalJSON; in a list, in a
//     map or behind a pointer it is called.
//   - A field named "-" is left out, even with a comma: `json:"-,"`.
//   - Floats stay floats: a float32 is widened, not read back from its shortest decimal, and a whole float64 is no
//     int64. Numbers are equal by value.
//   - A uint64 beyond int64, an array, and a map whose keys are not of a string kind have no JSON value.
//
// Where ToUnstructured itself panics, leaks or fails, and so no such type can be in use, encoding/json is followed
// instead: fields that are not exported are left out; a nil interface or a nil pointer that would marshal itself is
// null; the address of a copy is taken where a MarshalJSON wants a pointer. Embedded types that are no plain structs
// have no JSON value.
//
// Trees that a Go value brings along, such as the content of an unstructured object, are shared, all else is copied.
// Nothing here recurses deeper than limits.MaxDepth, so that cyclic pointers end in an error.
package gostruct
