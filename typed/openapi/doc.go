// Package openapi compiles the topology of types, [typed.Type], from published schemas: OpenAPI v3 documents and
// CustomResourceDefinitions. It embeds the built-in types.
//
//	widgets, err := openapi.CompileCRD(crd)
//	if err != nil {
//		return err
//	}
//	types := openapi.Union(openapi.Builtin(), widgets)
//	pod := types.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
//
// A [Registry] never changes. A program whose types change keeps the current Registry in an atomic.Pointer, and makes a
// new fieldmanager.FieldManager after each change.
//
// # From schema to topology
//
//	schema                                    topology
//	type: object, properties                  struct; other fields are rejected
//	type: object, additionalProperties        map with free keys
//	type: object without these two            map of anything, deduced
//	x-kubernetes-preserve-unknown-fields      unknown fields are deduced, here and in all inline schemas below
//	x-kubernetes-map-type: atomic             atomic map or struct; beside a $ref, for this use of the type only
//	type: array                               atomic list
//	x-kubernetes-list-type: set               set
//	x-kubernetes-list-type: map               list keyed by x-kubernetes-list-map-keys
//	x-kubernetes-patch-strategy: merge        without a list type: a list keyed by x-kubernetes-patch-merge-key, or
//	                                          a set if there is no merge key
//	type: integer, number, boolean, string    the scalar; a string with a format other than byte is any scalar
//	                                          (an integer may have a fraction)
//	no type                                   anything: scalar, list or map
//	$ref, allOf of a single $ref              the type that is referred to
//	default, nullable                         used by [typed.Type.Default]; keys of list items use defaults, too
//
// Recursive schemas become cyclic types. Keywords for validation only (enum, pattern, required, oneOf ...) are
// ignored.
//
// # Caveats
//
// Without the option Complete, a $ref to a missing model is not an error, because documents are often incomplete: the
// field gets a type without shapes, so only objects that use the field are rejected. A map type beside a $ref to a
// scalar, and a model that is only a $ref, also result in a type without shapes.
package openapi
