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
// A write is the step from one version of an object to the next that is observed. A side is a
// manager with its operation and subresource, as an entry of managedFields names it. A side writes a
// field when the value of the field changes, and the side owns the field after the write (or, of a
// field that is removed, had its entry changed or wrote another field). A manager that removes a field and
// owns nothing has no entry: it is the side Nobody.
//
// A turn on a field is a run of writes of one side; the turn ends when another side writes the field.
// A turn is a return when it sets the field to what the same side had set it to at the end of its
// turn before: the side puts back what another side changed.
//
//	side    writes   turn   return
//	argocd  3        1
//	hpa     5        2
//	argocd  3        3      yes: argocd had set 3
//	hpa     5        4      yes
//	hpa     6               the turn of hpa goes on
//	argocd  3        5      yes
//
// A field is fought over when it saw Options.Returns returns within Options.Window. So these are no
// fights, however often they write:
//
//   - one side that writes a field alone, such as an autoscaler or the controller of a rollout;
//   - a handover, in which one side writes after another and stays;
//   - sides that take turns and set new values each time, such as the holders of a Lease.
//
// # What a flap is
//
// Two sources that write under the name of one manager are one side: two replicas of a controller with
// different configurations, or two Kustomizations that have the same object. No entry tells them
// apart, and nobody conflicts. But the value goes back and forth within one turn.
//
// A write reverts when its turn continues, and it sets the field to the value that the same side had set before its
// last write. A field flaps when the last Options.Returns writes of a turn, or more, revert, one after the other, and
// that many of them are within the window.
//
//	side        writes   reverts
//	controller  a
//	controller  b
//	controller  a        1
//	controller  b        2
//	controller  a        3       it flaps
//	controller  c                a third value ends it
//
// So a manager that goes through several values, such as an autoscaler, does not flap, and neither does
// one that changes a field and back once, or slowly. A status may go back and forth with what it
// describes: fields below .status and writes to a status subresource do not flap. Components of
// Kubernetes do not either, because their writes, such as the readiness in an EndpointSlice, are a status
// as well, nor do Leases and Events.
//
// # What else is found
//
// An idle writer writes at least Options.IdleWrites times within the window without changing a value
// other than times. Leases and Events are left out: to write times is what they are for. An applier that
// repeats its intent every few minutes is below that rate.
//
// A write that changes nothing at all, not even a time, leaves the object at its version. A watch of
// objects has no event for it, so [Tracker.Observe] can't count it. An audit log has a response for each
// request: [Tracker.ObserveWrite] counts it, as a write of the manager of the request. Dry runs are no
// writes; the caller leaves them out.
//
// Managed fields grow when they have more entries, and more bytes by half, than when the object was
// first observed, and at least a KiB more.
//
// # Bounds
//
// For each object the tracker keeps the last version that it observed, at most Options.Fields fields
// that were written, each with at most 16 turns, and the times of reverts and of idle writes.
// The fields that were written the longest ago are forgotten first. Values are kept as text of at most
// 64 bytes, and compared by a hash.
//
// The tracker has no clock: its caller gives the times. It may be used by one goroutine at a
// time.
package fights
