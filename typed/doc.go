// Package typed knows how the fields of a type merge, and does the work on
// values that needs to know: it validates them, tells which paths they hold,
// merges, compares, removes from and extracts them.
//
// # Values
//
// A value is a plain JSON tree: map[string]any, []any, string, bool, nil, and
// numbers as int64 or float64 (other Go number types are accepted). Operations
// never change a value that they are given; what they return may share any part
// of it, so neither may be changed afterwards.
//
// # Topology
//
// A [Type] says which shapes a value may take (scalar, list, map) and how each
// merges. Types form a graph: a type that contains itself, such as
// JSONSchemaProps, is a cycle. Package typed/openapi compiles them from OpenAPI
// documents and CustomResourceDefinitions; [Deduced] serves where there is no
// schema. A Type must not be changed once it is in use.
//
//	atomic list or map   one leaf: replaced and owned as a whole
//	granular map, struct each entry or field merges and is owned by itself
//	set                  items are scalars, each owned by its value
//	keyed list           items are structs, each owned by its key fields
package typed
