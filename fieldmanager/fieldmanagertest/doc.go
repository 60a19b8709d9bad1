// Package fieldmanagertest is a test harness for field managers. It writes to one object as an API server does, in
// process and in milliseconds: managers apply, update and patch the object, and after each write a test can check the
// object, its managed fields and the conflicts.
//
//	h := fieldmanagertest.New(t, fieldmanagertest.WithSchema(
//		`spec: {type: object, properties: {replicas: {type: integer}}}`))
//	h.Do(fieldmanagertest.Apply("alice", `spec: {replicas: 3}`))
//	result := h.Do(fieldmanagertest.Apply("hpa", `spec: {replicas: 5}`)) // result.Conflicts
//	h.Do(fieldmanagertest.Apply("hpa", `spec: {replicas: 5}`).Force())
//	h.RequireOwner(".spec.replicas", "hpa")
//
// # What the harness does as a server
//
//   - A stored object has a UID, a creation time, and a resourceVersion that changes with each stored write. A no-op,
//     and a write that changes only times of entries, is not stored.
//   - A write to the main resource does not change status if the type has a status subresource; a write to status
//     changes nothing else.
//   - A write to scale goes through a Scale.
//   - The clock starts at 2026-01-01T00:00:00Z and advances by one second with each write. Nothing is random.
//
// It has no validation, defaulting, pruning of unknown fields, generations or admission: these are layers above the
// engine.
//
// # Scenarios
//
// A scenario is a text file (txtar): a comment that describes it, and steps, each followed by its expected result.
//
//	Two managers share a field when both apply the same value.
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
// Two lines of the comment are for programs: "rules:" lists the rules of doc/spec.md that the scenario shows,
// "differs:" the rows of doc/differences.md. "go test ./fieldmanager/fieldmanagertest -update" updates the expected
// results.
//
// The steps:
//
//	schema [VERSION…]   the type from here on: kind Thing of group example.dev at
//	                    the versions (v1), with these properties; one called
//	                    status makes the subresource
//	crd                 the type from here on: a CustomResourceDefinition
//	deduced             the type from here on: deduced from the values, of any kind
//	live                the object as it is stored, whoever wrote it
//	apply, update, patch [MANAGER] [force] [version=V] [subresource=S] [agent=A]
//	                    a write. An update is the whole object; a patch is a JSON
//	                    merge patch; agent is a User-Agent that names the manager.
//	                    What is left out of apiVersion, kind and name is filled in.
//	extract MANAGER [subresource=S]
//	                    the intent that the manager's entry speaks of
//	interleave [limit=N] [seed=N]
//	                    the writes that follow, in every order that keeps each
//	                    manager's own; the object is then as it was before
//
// What is expected:
//
//	want         the whole object as it is then stored; of extract, the intent
//	unchanged    nothing was written
//	conflict     message and causes of the Status
//	error        the error's text
//	warnings     what the host is told, besides one of the others
//	orders       of interleave: how many there are, and what they come to
//
// Without a schema, crd or deduced, the object is of the built-in kind that the
// first write or live names.
package fieldmanagertest
