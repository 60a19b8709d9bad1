// Package managedfields decodes, changes and encodes metadata.managedFields, the entries that record which manager
// owns which fields of an object.
//
// # Rules
//
//   - A [Key] identifies an entry: manager, operation, subresource, and for updates the API version. An applier has one
//     entry for all versions that it applies at; an updater has one for each version. No two entries have the same key.
//   - [Entries] are sorted as servers write them: applies before updates, then by time, manager, API version and
//     subresource.
//   - Entries are values: operations return new ones. Their sets are immutable and shared.
//   - An object keeps at most [DefaultCap] entries of updates: [Cap] merges the oldest.
//   - Times have whole seconds. An entry has no time if its manager came to own fields without changing the object.
//
// # Usage
//
// [Decode] and [Encode] convert the entries of Go structs, [DecodeTree] and [EncodeTree] those of unstructured
// objects:
//
//	entries, err := managedfields.Decode(object.GetManagedFields())
//	entry, ok := entries.Get(managedfields.KeyOf("kubectl", managedfields.Apply, "", ""))
//	if err == nil && ok {
//		fmt.Println(entry.Fields) // the paths that kubectl owns
//	}
//
// A [List] holds the entries of one object during a write. It decodes an entry only when its fields are needed, and
// writes unchanged entries back as they were read, even those that can't be decoded. [Read] reads the list of an
// object, and [List.Into] writes it.
//
// # What is exported
//
// Ten types and the functions that decode, encode and sort them. [List], [Record], [NewTreeRecord], [ReadEntry],
// [Strip], [Unowned] and [CheckCount] are for packages fieldmanager, upgrade and blame, which share one
// representation of entries.
package managedfields
