// Package fieldpath represents paths of fields in an object, and sets of paths.
//
// A [Path] is a sequence of [Element]s. Each element selects one child of a container: a field of a struct or map
// ([FieldElement]), the item with given key fields in a keyed list ([KeyElement]), the item with a given value in a set
// ([ValueElement]), or the item at a position ([IndexElement]). A [Set] is an immutable trie of paths.
//
// # Rules
//
//   - A set is canonical: at each level its elements are sorted and distinct, and no branch is empty.
//   - The nil *Set is the empty set. All methods accept it.
//   - Sets never change, so objects and goroutines can share them. Operations share branches with their operands.
//   - A set may contain the path of a container without the paths of its children, and the paths of children without
//     the path of their container: ownership of either does not imply ownership of the other.
//   - Elements are equal if they have the same canonical JSON. Numbers are canonical: 1, 1.0 and 1e0 are one value.
//   - Input is bounded in depth and size (spec rules 12.1, 12.2 and 12.3).
//
// # Wire format
//
// [Parse] and [Set.AppendJSON] decode and encode FieldsV1, the format of metadata.managedFields. Its grammar is at
// the top of decode.go. [FromTree] and [Set.Tree] do the same for a FieldsV1 of an unstructured object, which is
// already decoded into maps.
//
//	set, err := fieldpath.Parse([]byte(`{"f:spec":{"f:replicas":{}}}`))
//	if err == nil {
//		fmt.Println(set.Has(fieldpath.NewPath("spec", "replicas"))) // true
//	}
package fieldpath
