// Package managedfields decodes, changes and encodes metadata.managedFields, the entries that record which manager
// owns which fields of an object.
//
// # Rules
//
//   - A [Key] identifies an entry: manager, operation, subresource, and for updates the API version. An applier has one
//     entry for all versions at which it applies; an updater has one for each version. Keys are unique within a list.
//   - [Entries] are sorted in the order in which servers write them: applies before updates, then by time, manager, API
//     version and subresource.
//   - The caller of Read owns the entries. Their sets are immutable and shared.
//   - By default, a write keeps at most 10 Update entries of an object: [Entries.Cap] merges the oldest.
//   - Times have whole seconds. An entry has no time if its manager owns fields but never changed the object.
//
// # Usage
//
// [Read] reads the entries of an object, and [Entries.Into] writes them. An entry is decoded when its fields are
// needed. An unchanged entry is written as it was read, even if it can't be decoded:
//
//	entries, err := managedfields.Read(object)
//	entry := entries.Get(managedfields.KeyOf("kubectl", metav1.ManagedFieldsOperationApply, "", ""))
//	fmt.Println(entry.Owned()) // the paths that kubectl owns
//
// [Decode] and [DecodeTree] decode a list without an object, and fail if an entry is malformed. [Entries.Encode] and
// [Entries.EncodeTree] are their inverses.
package managedfields
