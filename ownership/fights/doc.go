// Package fights finds field managers that undo each other's writes, or their own.
//
//	t := fights.New(fights.Options{})
//	for event := range events { // a watch, or an audit log
//		for _, finding := range t.Observe(event.Object, event.Time) {
//			fmt.Println(finding)
//		}
//	}
//
// # What a fight is
//
// A write is the step from one observed version of an object to the next. A side is a manager with its operation and
// subresource, as in an entry of managedFields. A side has written a field if the field's value changed and the side
// owns the field after the write. If the field was removed, its writer is the side whose entry is new, has another time
// or has gained fields. If there is no such side, the writer is the side that wrote the other fields in the same step.
// A manager that removes a field and then owns nothing has no entry: its side is called Nobody, unless the caller names
// the writer, for example from an audit log ([Tracker.ObserveWrite]).
//
// The fields that are compared between two versions of an object are the leaves of the union of all entries of both
// versions. If an entry has fields in a map or list item, only these fields are compared, and not the map or item
// itself. Therefore a change of a field in a map or item is never attributed to a side that owns only the map or item.
// The owner of a key of stringData in a Secret also owns the key of data to which servers copy it.
//
// An object is the same at all API versions. If two observed versions of an object have different API versions, a
// conversion may have changed values. Then a field is compared only if it has the same JSON type in both, and if the
// writer has taken it from another owner.
//
// A turn on a field is a series of writes by one side. It ends when another side writes the field. A turn is a return
// if it sets the field to the value that the same side had set at the end of its previous turn: the side reverts the
// change of another side.
//
//	side    writes   turn   return
//	argocd  3        1
//	hpa     5        2
//	argocd  3        3      yes: argocd had set 3
//	hpa     5        4      yes
//	hpa     6               the same turn continues
//	argocd  3        5      yes
//
// A field is fought over if at least Options.Returns of its turns within Options.Window are returns. Therefore the
// following are not fights, however many writes there are:
//
//   - one side that alone writes a field, such as an autoscaler or the controller of a rollout;
//   - a handover, after which only the new side writes;
//   - sides that take turns and set new values each time, such as the holders of a Lease.
//
// # What a flap is
//
// Two sources that write under the same manager name are one side. Examples are two replicas of a controller with
// different configurations, and two Kustomizations that contain the same object. Entries can't distinguish them, and
// their applies do not conflict. But the value that they write alternates within one turn.
//
// A write is a revert if it continues a turn and sets the field back to the value that the same side had set two writes
// before. A field flaps if the latest writes of a turn are an uninterrupted series of reverts, and at least
// Options.Returns of them are within the window.
//
//	side        writes   reverts
//	controller  a
//	controller  b
//	controller  a        1
//	controller  b        2
//	controller  a        3       it flaps
//	controller  c                a third value ends the series
//
// Therefore a manager that sets a series of values, such as an autoscaler, does not flap. A manager that changes a
// field and changes it back, once or slowly, does not flap either. A status may alternate with the state that it
// describes. Therefore fields below .status, and fields that are written through a status subresource, are never
// reported as flapping. The same is true of fields that a Kubernetes component writes, such as the readiness in an
// EndpointSlice, and of the fields of Leases and Events.
//
// # Other findings
//
// An idle writer writes at least Options.IdleWrites times within the window and changes no values except times.
// Leases and Events are exempt, because writing times is their purpose. An applier that repeats its intent every few
// minutes stays below that rate.
//
// A write without any change, not even of a time, does not create a new version of the object. A watch has no event for
// it, so [Tracker.Observe] can't count it. An audit log has a response for each request, so [Tracker.ObserveWrite]
// counts the request as a write of its manager. Dry runs are not writes: the caller must leave them out.
//
// Managed fields grow if, since the object was first observed, the number of entries has increased and the size has
// increased by at least half and at least 1 KiB. The finding stays, with the largest size, even if they shrink again.
//
// # Bounds
//
// For each object, the tracker keeps the last observed version, the written fields (at most Options.Fields, with at
// most 16 turns each), and the times of reverts and idle writes. If there are more fields, it forgets the fields whose
// last write is the oldest. For each value of a turn, it keeps a hash of the whole value for comparisons, and at most
// 64 bytes of text for the output.
//
// The tracker has no clock: its caller passes the times. It is not safe for concurrent use.
package fights
