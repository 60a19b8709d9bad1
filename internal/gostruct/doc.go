// Package gostruct reads Go structs, as API servers hold their objects, as the
// JSON values that they stand for, in place: through accessors that are compiled
// once for each Go type from its json tags, without making maps of them first.
//
//	pod, err := gostruct.Of(&corev1.Pod{…})      // a Node: a map or list in place
//	spec, ok := pod.Get("spec")                  // a Node again, or a plain value
//	tree, err := pod.Tree()                      // plain maps and lists, when needed
//	pod.Pairs(other, func(…) {…})                // the entries in which two maps differ
//	pod.Fits(guess, 0)                           // whether it has the paths of a set, and is valid
//
// # Values
//
// What stands at one place is a [Value]: a plain JSON scalar (nil, string, bool,
// int64, float64), a [Node], or, where a Go type marshals itself, what that comes
// to: a scalar or a plain tree of map[string]any and []any. An error stands where
// a Go value has no JSON value; [Tree] returns it, with its path.
//
// A value is, JSON value for JSON value, what
// runtime.DefaultUnstructuredConverter.ToUnstructured makes of it. Where that
// differs from encoding/json, the objects that servers store are what
// ToUnstructured makes, and so it is followed:
//
//   - A name that several fields of a struct and of those embedded in it have is
//     that of the last of them that is not left out, in the order of the source;
//     encoding/json takes the shallowest.
//   - The option ",string" does nothing, and encoding.TextMarshaler is not asked.
//   - A field of a string, bool or number kind is its plain value although its
//     type has a MarshalJSON; in a list, in a map or behind a pointer it is asked.
//   - A field named "-" is left out, even with a comma: `json:"-,"`.
//   - Floats stay floats: a float32 is widened, not read back from its shortest
//     decimal, and a whole float64 is no int64. Numbers are equal by value.
//   - A uint64 beyond int64, an array, and a map whose keys are not of a string
//     kind have no JSON value.
//
// Where ToUnstructured itself panics, leaks or fails, and so no such type can be
// in use, encoding/json is followed instead: fields that are not exported are
// left out; a nil interface or a nil pointer that would marshal itself is null;
// the address of a copy is taken where a MarshalJSON wants a pointer. Embedded
// types that are no plain structs have no JSON value.
//
// # Cost and sharing
//
// A Node is four words that point into the object: making one costs nothing but
// the boxing. Nothing is copied and nothing is kept, so that the object must not
// change while a Node or a tree of it is in use: plain trees that a Go value
// brings along, such as the content of an unstructured object, are shared. Nodes
// are safe for concurrent reads. Nothing here recurses deeper than [MaxDepth], so
// that cyclic pointers end in an error.
package gostruct
