// Package fieldmanagertest is a test harness for field managers. It writes to one object as an API server does, in
// process and in milliseconds. Managers apply, update and patch the object. After each write, a test can check the
// object, its managed fields and the conflicts.
//
//	h := fieldmanagertest.New(t, fieldmanagertest.WithSchema(
//		`spec: {type: object, properties: {replicas: {type: integer}}}`))
//	h.Do(fieldmanagertest.Apply("alice", `spec: {replicas: 3}`))
//	result := h.Do(fieldmanagertest.Apply("hpa", `spec: {replicas: 5}`)) // result.Conflicts
//	h.Do(fieldmanagertest.Apply("hpa", `spec: {replicas: 5}`).Force())
//	h.RequireOwner(".spec.replicas", "hpa")
//
// # What the harness does like a server
//
//   - A stored object has a UID, a creation time, and a resourceVersion that changes with each stored write. A no-op,
//     and a write that changes only the times of entries, are not stored.
//   - If the type has a status subresource, a write to the main resource does not change the status, and a write to the
//     status changes nothing else.
//   - For a write to the scale subresource, the object is converted to a Scale and back.
//   - The clock starts at 2026-01-01T00:00:00Z and advances by one second with each write. Nothing is random.
//
// The harness has no validation, defaulting, pruning of unknown fields, generations or admission: these are layers
// above the engine.
//
// # Scenarios
//
// A scenario is a text file (txtar): a comment that describes it, and steps, each followed by its expected result.
//
//	A manager that applies another value has a conflict.
//
//	rules: 5.1
//
//	-- schema --
//	spec: {type: object, properties: {a: {type: integer}}}
//	-- apply alice --
//	spec: {a: 1}
//	-- want --
//	(the whole object with its managed fields)
//	-- apply bob --
//	spec: {a: 2}
//	-- conflict --
//	(the message and the causes of the Status)
//
// Two kinds of lines in the comment are for programs: "rules:" lists the rules of doc/spec.md that the scenario shows,
// and "differs:" lists the rows of doc/differences.md. "go test ./fieldmanager/fieldmanagertest -update" rewrites the
// expected results.
//
// [Grammar] describes the steps and their expected results.
package fieldmanagertest
