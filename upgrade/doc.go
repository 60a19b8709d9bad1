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
// An applier removes the fields that it owned and no longer applies. Client-side apply removes a field if
// the annotation has the field and the next intent lacks it. So the fields in the annotation must move to the applier.
// Fields that the manager already applies, or applies next, move with them. From, Everything and Also are options:
//
//	held   = the paths in the annotation, in the manager's own Apply entry and in the next intent, and the containers of
//	         all these paths
//	moved  = in each Update entry of a manager in From: the fields in held or, if Everything is set, all fields;
//	         in each Update entry of any manager: the fields at or below a path in Also
//	left   = the fields that do not move, in the Update entries of the managers in From
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
//   - A container that an entry owns moves if it is in held, or if all fields that the entry owns inside it move.
//   - Equal inputs have equal results: the order, time and version of a new entry depend only on the annotation, the
//     object's version and the entries whose fields move.
package upgrade
