// Package upgrade carries objects from client-side apply to server-side apply and
// back.
//
// Client-side apply keeps the intent that it applied last in an annotation, and
// its writes are Updates. Server-side apply keeps what an intent owned in an Apply
// entry of metadata.managedFields. Who goes over from one to the other without
// carrying ownership along can never again remove a field that was there before:
// the Update entry owns it for good.
//
//	result, err := upgrade.ToServerSide(live, upgrade.ServerSideOptions{
//		Types: openapi.Builtin(), Manager: "flux",
//	})
//	result.Preview.Render(os.Stdout)
//	// send result.Patch as application/json-patch+json
//
// # What moves
//
// An applier removes what it owned and no longer applies. So what moves to it must
// be what client-side apply would have removed: what the annotation holds.
//
//	held   = the paths of last-applied, of the manager's own Apply entry, and of
//	         the next intent, containers included
//	moved  = of each Update entry of From: its fields that are held, or all of them
//	         if there is neither an annotation nor an Apply entry to tell; and what is
//	         in or below a path of Also, of every Update entry
//	left   = the entry's other fields, which stay where they are
//
// Defaults that the server filled in and what an admission webhook injected are in
// the Update entry too, but never were in the annotation: they are left, so that no
// apply removes them.
//
// # Invariants
//
//   - Inputs are never changed. A result may share memory with them.
//   - Nothing but managed fields and the annotation ever changes.
//   - No field loses its last owner, unless Release says so.
//   - What moves from an entry leaves it; entries of which nothing moves stay byte
//     for byte, and an entry of which nothing is left goes.
//   - A container moves when it is held, or when everything that its entry owns in
//     it moves.
//   - The same input gives the same output: order, times and version of the new
//     entry follow from the entries that it is made of.
//
// # Both worlds
//
// [ClientSideApply] is the three-way merge of kubectl apply itself, so that both
// ways of applying can be run against one object: hand its result to
// fieldmanager's Update, as a server would.
package upgrade
