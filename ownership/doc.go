// Package ownership moves the ownership of fields between managers. It changes only the managed fields of an object.
//
//	mover := ownership.Mover{Types: types}
//	result, err := mover.Do(ctx, live, ownership.Transfer{
//		Fields: fields, From: managedfields.Key{Manager: "kubectl"}, To: managedfields.Key{Manager: "argocd"},
//	})
//	if err != nil {
//		return err
//	}
//	patch, err := result.Patch() // a JSON Patch, bound to live's resourceVersion
//
// # Moves
//
//	Transfer   moves some or all fields from one manager to another
//	Release    removes fields from a manager
//	Adopt      makes a manager a co-owner of existing fields
//	Drop       removes all entries of a manager that no longer exists
//	Rename     changes the name of a manager
//
// # Consequences
//
// Moves change no values, but the managers' next applies may: a field that a manager owned and omits from its next
// intent is removed, unless another manager owns it (spec rule 6.1). For every applier whose fields changed,
// [Result.Next] shows what happens if it applies its last intent again. The last intent is derived from the fields
// that the applier owned. [Result.ClientSide] has the fields that client-side apply still manages.
//
// # Rules
//
// See spec rules 14.1, 14.2, 14.3 and 14.4. In short:
//
//   - The set of fields that an applier owns is closed: it has every item and map entry around its fields, and the key
//     fields of these items. If a field moves out of an item in which the manager owns other fields, both managers own
//     the item. If the field was the manager's last field in the item, the item moves, too.
//   - Atomic values move as a whole.
//   - No move makes an applier the owner of a declared container that has content. No apply results in such ownership,
//     so the applier's next apply would then remove the container. An updater may own such a container.
//   - Entries are sorted, and empty ones are removed. A new entry has the time of the entry that the fields come from;
//     for an adoption, it has the time of the move. If an existing entry gains fields of another entry, it gets the
//     later time of both. An adoption does not change the time of an existing entry.
//   - Inputs are not changed.
package ownership
