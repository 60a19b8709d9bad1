// Package managedfields reads and writes metadata.managedFields: the entries
// that say which manager owns which fields of an object, and through which
// operation.
//
// # Rules
//
//   - A [Key] says whose an entry is: manager, operation, subresource, and for
//     updates the API version. An applier has one entry whatever versions it
//     applies at; an updater has one for each version.
//   - [Entries] are in the order of the wire: applies before updates, then by
//     time, manager, version and subresource. Two managers never share a key.
//   - Entries are values: the operations return new ones. The sets in them are
//     immutable and shared.
//   - An object keeps at most [DefaultCap] entries of updates: [Cap] merges the oldest.
//   - Times have whole seconds. An entry may have none: a manager that came to
//     own fields without changing the object.
//
// A [List] holds the entries of one object while something is done to them: it decodes
// only what is asked for, and keeps as they were read the entries that nobody changes,
// those among them that can't be decoded. [Read] reads the list of an object, and
// [List.Into] puts it into one.
//
// Decode and Encode speak the wire format as Go structs, and DecodeTree and
// EncodeTree as it stands in an unstructured object, where Of finds it and With
// replaces it.
package managedfields
