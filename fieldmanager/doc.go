// Package fieldmanager applies and tracks writes to Kubernetes-style objects:
// who owns which field, what an apply merges and removes, and what is in
// conflict.
//
//	m, err := fieldmanager.New(gvk, types, fieldmanager.Options{})
//	result, err := m.Apply(ctx, live, applied, fieldmanager.ApplyOptions{Manager: "my-controller"})
//
// # Rules
//
//   - A FieldManager never changes its arguments (spec rule 1.6). Results may share memory with
//     them, so neither may be changed in place afterwards: deep-copy first.
//   - An error changes nothing, and carries its path: for a value that violates its type,
//     or has no JSON, errors.As finds a *[typed.Error]. A
//     conflict is a [conflicts.Conflicts], which apierrors.IsConflict knows.
//   - Managed fields are never lost because of an error: entries that can't be
//     converted or compared now are kept as they are, and the host gets a warning
//     (the Warnings of [Options]).
//   - Results are deterministic, and the time is the host's (the Clock of [Options]).
//     One exception: if several values in maps of a Go struct are nested too deep,
//     the error is about any of them.
//   - A FieldManager is safe for concurrent use.
//
// # The steps of a write
//
// Apply is a pipeline, in apply.go: check the intent; take live's entries, or make one of before-first-apply; merge,
// which finds what the intent owns; prune what the manager dropped and nobody else owns; find what others lose, which
// is a conflict unless forced; date the entry if the object changed. Update, in update.go, compares live with the new
// object and gives the manager what it changed. doc/spec.md numbers the rules that the code cites.
package fieldmanager
