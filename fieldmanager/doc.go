// Package fieldmanager applies and tracks writes to Kubernetes-style objects:
// who owns which field, what an apply merges and removes, and what is in
// conflict.
//
//	m, err := fieldmanager.New(gvk, types, fieldmanager.Options{})
//	result, err := m.Apply(ctx, live, applied, fieldmanager.ApplyOptions{Manager: "my-controller"})
//
// # Rules
//
//   - Nothing that a FieldManager is given is changed (spec rule 1.6). What it returns may share
//     memory with it, so that neither may be changed in place afterwards:
//     deep-copy first.
//   - An error changes nothing, and carries the path that it is about: errors.As finds
//     a *[typed.Error] in that of a value that does not fit its type, or has no JSON. A
//     conflict is a [conflicts.Conflicts], which apierrors.IsConflict knows.
//   - Managed fields are never lost because of an error: entries that can't be
//     converted or compared now are kept as they are, and the host is told
//     through the Warnings of [Options].
//   - Nothing is random, and the time is the host's (the Clock of [Options]).
//     Only of several values in maps of a Go struct that are nested too deep, the
//     error is about any one.
//   - A FieldManager is safe for concurrent use.
//
// # How a write goes
//
// Apply is a pipeline, in apply.go: check the intent; take live's entries, or
// those of before-first-apply; merge, which finds what the intent owns; prune what the
// manager dropped and nobody else owns; find what others lose, which is a
// conflict unless forced; date the entry if the object changed. Update, in
// update.go, compares live with the new object and gives the manager what it
// changed. doc/spec.md numbers the rules that the code cites.
package fieldmanager
