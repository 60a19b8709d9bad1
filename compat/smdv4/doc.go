// Package smdv4 serves hosts that hold structured-merge-diff v4 types already:
// it converts paths, sets, schemas and values to Tenure's types and back, and
// [Updater] answers what v4's merge.Updater does, by Tenure.
//
//	types, err := smdv4.Parse(schemaYAML)             // *typed.Type by name
//	set, err := smdv4.FromSet(v4set)                  // *fieldpath.Set
//	updater := smdv4.Updater{Converter: converter}    // instead of merge.Updater
//
// # Rules
//
//   - What v4 can hold and Tenure can't is an [*Error] that says where it is: a
//     path element that selects nothing, a value that is not JSON. All of
//     Tenure's paths and sets have a counterpart in v4.
//   - Nothing that is given is changed. Trees and values share memory with what
//     they were made of, sets share values; neither may be changed afterwards.
//   - A schema is compiled as v4 resolves it: names may form cycles, and a
//     reference may override the relationship of what it refers to.
//   - Meaning is Tenure's, that is v6's: an item may lack some of its key fields,
//     an emptied container stays empty, an entry of a version that is gone is
//     kept. doc/differences.md has the list.
package smdv4
