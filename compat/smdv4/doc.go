// Package smdv4 is for hosts that use types of structured-merge-diff v4: it converts paths, sets, schemas and values to
// Tenure's types and back, and [Updater] implements v4's merge.Updater with Tenure.
//
//	types, err := smdv4.Parse(schemaYAML)             // *typed.Type by name
//	set, err := smdv4.FromSet(v4set)                  // *fieldpath.Set
//	updater := smdv4.Updater{Converter: converter}    // instead of merge.Updater
//
// # Rules
//
//   - A value of v4 that Tenure can't represent is an [*Error] with its path: for example, a path element that selects
//     nothing, or a value that is not JSON. All of Tenure's paths and sets have a counterpart in v4.
//   - Arguments are not changed. Resulting trees and values share memory with the arguments, and resulting sets share
//     values with them. So do not change arguments or results afterwards.
//   - A schema is compiled as v4 resolves it: names may form cycles, and a reference may override the relationship of
//     the type that it refers to.
//   - Writes have Tenure's results, which are v6's: an item may lack some of its key fields, an emptied container
//     remains empty, and an entry of a removed version is kept. doc/differences.md lists all differences.
package smdv4
