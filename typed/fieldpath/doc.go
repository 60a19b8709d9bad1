// Package fieldpath names places in an object and holds sets of them.
//
// A [Path] is a sequence of [Element]s, each of which selects one child of a
// container: a field of a struct or map (Field), the item of a keyed list with
// given key fields (Key), the item of a set with a given value (Value), or the
// item at a position (Index). A [Set] is an immutable trie of paths.
//
// # Rules
//
//   - A set is canonical: at each level its elements are sorted and distinct,
//     and no branch is empty. Two sets hold the same paths exactly when
//     [Set.Equal] says so.
//   - The nil *Set is the empty set; every method accepts it.
//   - Sets never change once made, so that they may be shared between objects
//     and goroutines; the operations share branches with their operands.
//   - A path may be in a set although a path below it is not, and the other way
//     round: membership of a container says nothing about its children.
//   - Elements are equal when their canonical JSON is. Numbers are canonical:
//     1, 1.0 and 1e0 are one value.
//   - What comes from outside is bounded in depth and size: see [MaxDepth] and the
//     limits beside it.
//
// # Wire format
//
// [Set.AppendJSON] and [Parse] write and read the FieldsV1 format of
// metadata.managedFields, whose grammar stands at the top of decode.go;
// [Set.Tree] and [FromTree] do the same for FieldsV1 that has already been
// decoded into maps, as it stands in an unstructured object.
//
//	set, err := fieldpath.Parse([]byte(`{"f:spec":{"f:replicas":{}}}`))
//	set.Has(fieldpath.Path{fieldpath.Field("spec"), fieldpath.Field("replicas")}) // true
//
// # What came up before
//
// The same names, and the same small sets, come up in most FieldsV1: small
// tables of the process keep those of late, and decoded sets share them; common.go
// says how. The same whole FieldsV1 comes back on every write of an object: a
// [Cache], bounded in bytes, answers for it with a set that it has. Neither ever
// changes what a FieldsV1 is decoded to.
package fieldpath
