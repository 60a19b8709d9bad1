// Package typed implements the operations on the values of a type: it validates, merges, compares, extracts, removes
// and defaults values, and computes the paths that values contain.
//
// # Values
//
// A value is a plain JSON tree: map[string]any, []any, string, bool, nil, and numbers as int64 or float64 (other Go
// number types are accepted). Operations never change their arguments. Results may share memory with the arguments, so
// do not change either afterwards.
//
// # Topology
//
// A [Type] describes the shapes that a value may have (scalar, list, map) and how each shape merges. Types form a
// graph: a type that contains itself, such as JSONSchemaProps, is a cycle. Package typed/openapi compiles types from
// OpenAPI documents and CustomResourceDefinitions; [Deduced] is the type of values without a schema. A [List] and a
// [Map] can't be changed. The fields of a Type can be set later, so that a Type can contain itself; do not change a
// Type after its first use.
//
//	atomic list or map      a leaf: replaced and owned as a whole
//	granular map, struct    each entry or field is merged and owned separately
//	set                     each scalar item is owned separately, and its value identifies it
//	keyed list              each struct item is owned separately, and its key fields identify it
//
// # Operations
//
// [Type.Merge] is the first step of a server-side apply: it validates an intent, merges it, and returns the fields that
// the intent owns. For example, with a set called tags:
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
// [Type.Validate] checks the limits of a value (spec rules 12.1 and 12.2). No operation recurses deeper than these
// limits allow: a comparison treats deeper values as different, a merge returns an error, and other operations treat
// deeper values as leaves. The cost of an operation grows with the size of the value as JSON, without the parts beyond
// the limits. If a Go map contains itself twice, this size doubles with each level. Validate rejects such a map, so
// call Validate first on untrusted input. [Equal] and [Type.Merge] do not need this call.
package typed
