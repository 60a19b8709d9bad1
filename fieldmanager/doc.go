// Package fieldmanager applies and tracks writes to Kubernetes-style objects: it decides which manager owns which
// field, what an apply merges and removes, and which fields are in conflict.
//
//	m, err := fieldmanager.New(gvk, types, fieldmanager.Options{})
//	result, err := m.Apply(ctx, live, applied, fieldmanager.ApplyOptions{Manager: "my-controller"})
//
// # Rules
//
//   - A FieldManager never changes its arguments (spec rule 1.6). Results may share memory with the arguments, so do
//     not change results or arguments in place afterwards: change a deep copy.
//   - A write that fails changes nothing. If a value violates its type, or can't be written as JSON, errors.As finds a
//     *[typed.Error] with the path of the value. A conflict is a [conflicts.Conflicts]; apierrors.IsConflict is true
//     for it.
//   - Managed fields of other managers are never lost because of an error: an entry that currently can't be converted
//     or compared is kept unchanged, and the host gets a warning (Warnings in [Options]).
//   - Results are deterministic, with one exception: if several values in maps of a Go struct are nested too deep, the
//     error names an arbitrary one of these values. Times come from the host (Clock in [Options]).
//   - A FieldManager is safe for concurrent use.
//
// # The steps of a write
//
// Apply, in apply.go, is a pipeline. It checks the request and reads live's entries; if an existing object has no
// entries, it makes an entry of the manager before-first-apply. It merges the intent, and computes the fields that the
// intent owns. It prunes the fields that the manager dropped and no other manager owns. It finds the fields that other
// managers lose: without force, these are conflicts. It sets the time of the manager's entry if the object changed.
// Update, in update.go, compares live with the new object, and makes the manager own the changed fields. The code cites
// the numbered rules in doc/spec.md.
package fieldmanager
