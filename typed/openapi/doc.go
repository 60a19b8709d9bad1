// Package openapi compiles the topology of types, [typed.Type], from the schemas
// in which servers publish them: OpenAPI v2 and v3, CustomResourceDefinitions, and
// the definitions that are generated for Go types. It also brings the built-in types
// along, and fetches those of a server.
//
//	widgets, err := openapi.CompileCRD(crd)
//	...
//	types := openapi.Union(openapi.Builtin(), widgets)
//	pod := types.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
//
// A [Registry] never changes; a program whose types do keeps the one of the moment in
// a [Current].
//
// # From schema to topology
//
// OpenAPI v2 differs in a few places; [CompileV2] has them.
//
//	schema                                    topology
//	type: object, properties                  struct; other fields are refused
//	type: object, additionalProperties        map with free keys
//	type: object and neither                  map of anything, deduced
//	x-kubernetes-preserve-unknown-fields      unknown fields are deduced, here and
//	                                          in everything that is written inline below
//	x-kubernetes-map-type: atomic             atomic map or struct; beside a $ref,
//	                                          of this use of the type only
//	type: array                               atomic list
//	x-kubernetes-list-type: set               set
//	x-kubernetes-list-type: map               list keyed by x-kubernetes-list-map-keys
//	x-kubernetes-patch-strategy: merge        where there is no list type: a list
//	                                          keyed by x-kubernetes-patch-merge-key,
//	                                          a set without it
//	type: integer, number, boolean, string    the scalar; a string with a format
//	                                          other than byte is any scalar
//	no type                                   anything: scalar, list or map
//	$ref, allOf of a single $ref              the type referred to
//
// Recursive schemas become cyclic types. Everything that concerns validation
// only (enum, pattern, required, oneOf ...) has no part in topology.
//
// # Caveats
//
// A $ref to a model that is not there is no error, because documents are often
// cut down to what somebody needs: such a field has a type without any shape, so
// that only objects that use it are refused. The same goes for a map type beside
// a $ref to a scalar, and for a model that is nothing but a $ref.
package openapi
