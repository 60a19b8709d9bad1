// Package ownership moves the ownership of fields between managers, in the managed
// fields of an object in hand: no value of the object changes.
//
//	mover := ownership.New(types, nil)
//	result, err := mover.Do(live, ownership.Transfer{
//		Fields: fields, From: managedfields.Key{Manager: "kubectl"}, To: managedfields.Key{Manager: "argocd"},
//	})
//	...
//	patch, err := result.Patch() // for a server, bound to live's resourceVersion
//
// # Moves
//
//	Transfer   from one manager to another, chosen fields or all
//	Release    a manager gives fields up
//	Adopt      a manager comes to own what is there already, along with its owners
//	Drop       a manager that is gone loses its entries
//	Rename     a manager gets another name
//
// # What follows
//
// A move says nothing about what the managers will apply next, and that decides what
// becomes of the object: what a manager owns and leaves out of its next intent is
// removed, unless somebody else owns it (spec rule 6.1). [Result.Next] says for every
// manager whose fields changed what comes of it when it goes on applying what it
// applied last, so far as that can be told from what it owned.
//
// # Rules
//
// They are spec rules 14.1 to 14.4; in short:
//
//   - What a manager applied is a closed set: it owns every item and map entry
//     that it owns something in, with the item's key fields. A field moves out of an
//     item without it as long as the manager has something else in it, and then both
//     own the item; with the last of what is in it goes the item itself.
//   - Atomic fields move as a whole; there is nothing to choose in them.
//   - An applier does not come to own a declared container that has something in
//     it, as an updater may: no intent owns one, and the next would remove it.
//   - Entries are as on the wire: sorted, without empty ones; a new one has the time
//     of the entry that it came from, and none when it adopted what others wrote.
//   - Nothing that is given is changed.
package ownership
