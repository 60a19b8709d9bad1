// Package ownership moves the ownership of fields between managers. It changes the managed fields of an object, and
// nothing else.
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
// What happens to the object depends on the next intents of the managers: a field that a manager owned and omits from
// its next intent is removed, unless somebody else owns it (spec rule 6.1). For every manager whose fields changed,
// [Result.Next] shows the result if it applies its last intent again, as far as that is known from what it owned.
//
// # Rules
//
// See spec rules 14.1, 14.2, 14.3 and 14.4. In short:
//
//   - An applier owns a closed set: every item and map entry around its fields, with the item's key fields. If a field
//     moves out of an item in which the manager owns other fields, both own the item. With its last field, the item
//     moves.
//   - Atomic values move as a whole.
//   - An applier never gets a declared container that has content, as an updater may: no intent owns one, and the next
//     intent would remove it.
//   - Entries are sorted, and empty ones are removed. A new entry has the time of its fields' old entry, an entry that
//     gained fields the later of both times, a new entry of an adoption the time of the move.
//   - Inputs are not changed.
package ownership
