// Package typed implements how values of a type merge: it validates values, computes the paths that they hold,
// merges, compares, removes, extracts and defaults.
//
// # Values
//
// A value is a plain JSON tree: map[string]any, []any, string, bool, nil, and numbers as int64 or float64 (other Go
// number types are accepted). Operations never change their arguments. Results may share memory with them, so neither
// may be changed afterwards.
//
// # Topology
//
// A [Type] describes the shapes that a value may have (scalar, list, map) and how each merges. Types form a graph: a
// type that contains itself, such as JSONSchemaProps, is a cycle. Package typed/openapi compiles types from OpenAPI
// documents and CustomResourceDefinitions; [Deduced] is for values without a schema. A [List] and a [Map] can't be
// changed. A Type is a variable, so that it can be made before the types that contain it; it must not be changed once
// it is used.
//
//	atomic list or map      a leaf: replaced and owned as a whole
//	granular map, struct    each entry or field merges and is owned by itself
//	set                     items are scalars; each is owned by its value
//	keyed list              items are structs; each is owned by its key fields
//
// # Operations
//
// [Type.Merge] is what a server-side apply needs first: it validates an intent, merges it, and returns what it owns.
// For example, with a set called tags:
//
//	tags := typed.SetList(&typed.Type{Scalar: typed.String})
//	t := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"tags": {Type: &typed.Type{List: tags}}}, nil)}
//	live := map[string]any{"tags": []any{"a"}}
//	intent := map[string]any{"tags": []any{"b"}}
//	merged, err := t.Merge(live, intent, typed.Rules{})   // Value: {tags: [a, b]}, FieldSet(): .tags[="b"]
//	changes := t.Compare(live, merged.Value)              // Added: .tags[="b"]
//
// # Limits
//
// [Type.Validate] checks the limits of a value (spec rules 12.1 and 12.2). No operation recurses deeper than the
// deepest value that they allow: deeper values are different in a comparison, are an error in a merge, and are leaves
// for the others. The cost of an operation follows the size of the value written as JSON, which is unbounded for a
// container that contains itself twice. Validate rejects that, and must be called first on untrusted input. [Equal] and
// [Type.Merge] do not need it.
package typed
