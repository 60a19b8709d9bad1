// Package upgrade moves objects from client-side apply to server-side apply and back.
//
// Client-side apply stores its last intent in an annotation, and its writes are Updates. Server-side apply stores the
// fields of an intent in an Apply entry of metadata.managedFields. A manager that starts to apply server-side without
// moving the ownership can never remove a field that was applied client-side: the Update entry still owns it.
//
//	result, err := upgrade.ToServerSide(ctx, live, upgrade.ServerSideOptions{Types: types, Manager: "flux"})
//	if err != nil {
//		return err
//	}
//	err = result.Preview.Render(os.Stdout, "deployment.apps/nginx")
//
// Send result.Patch with the content type application/json-patch+json.
//
// # What moves
//
// An applier removes the fields that it owned and no longer applies. Client-side apply removes the fields in the
// annotation that its next intent lacks. So the fields in the annotation must move to the applier. Fields that the
// manager already applies, or applies next, move with them:
//
//	held   = the paths in the annotation, in the manager's own Apply entry and in the next intent, and the containers of
//	         all these paths
//	moved  = for each Update entry of From: its fields in held, or all its fields with Everything; and for every
//	         Update entry: its fields at or below a path of Also
//	left   = the fields of the Update entries of From that do not move
//
// Defaults that the server set are in the Update entry, but not in the annotation. They do not move, so no apply
// removes them.
//
// # Invariants
//
//   - Inputs do not change. A result may share memory with them.
//   - Only managed fields and the annotation change.
//   - No field loses its last owner, except with Release.
//   - Fields that move are removed from their entry. Other entries keep their bytes; empty entries are removed.
//   - A container that an entry owns moves if it is in held, or if all fields of the entry in the container move.
//   - Equal inputs have equal results: the order, time and version of a new entry depend only on the annotation, the
//     object's version and the entries whose fields move.
package upgrade
