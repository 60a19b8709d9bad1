// Package report adds up who owns what in many objects: managers, kinds, what managed fields weigh, and what
// could be done about it.
//
//	r := report.New(report.Options{Now: time.Now()})
//	for object := range objects { // pages of lists
//		r.Add(ctx, report.Object{Tree: object, Types: types})
//	}
//	summary := r.Summary()
//
// Objects are added one after the other and are not kept. So a report takes memory for managers, kinds and examples,
// however many objects there are. It does no I/O and has no clock.
//
// # What the figures mean
//
// Size is the length of an object as compact JSON, with its managed fields. This is what watches and lists
// carry. etcd keeps built-in kinds as protobuf, where the rest of an object is smaller, and managed fields
// are the same JSON: their share is larger there. The share in the cache of an informer that strips nothing
// is at least this one.
//
// ManagedFields are the bytes of metadata.managedFields in it, with its name; for a manager, the bytes of its entries.
//
// Fields of an entry are the paths that it has, also the paths of items and maps that have others below them.
//
// LastWrite of a manager is the latest time of its entries. A server sets it when the manager changes an
// object or what it owns, and not when an apply changes nothing. So a silent manager, one whose last write
// is longer ago than Options.Silent, may still apply every minute: a suggestion to drop it is a question.
// Components of Kubernetes, such as kube-controller-manager and kubelet, are neither to be dropped nor upgraded. A time
// at or before 1970-01-01T00:00:00Z comes from a stopped clock and is ignored; a manager whose last write is
// in the future is not silent.
//
// Unowned fields are leaves of an object, as its type has them, that no entry has. Fields that a server
// sets (spec rule 2.7) do not count. Entries of all versions are compared by path, without conversion.
// Without a type, an object adds nothing here.
//
// Shared fields are the leaves that entries of at least two managers have. A manager's own entries, of
// several operations or versions, do not share.
//
// Client-side are the objects with the annotation of kubectl apply, or with an entry of its manager. What
// their migration would do is the preview of upgrade.ToServerSide for Options.Applier.
//
// Gone versions are the versions of entries that Options.IsServed denies. A server drops or keeps such entries as
// they are, because it can't convert the object to them.
//
// Ancient are the entries of the manager ancient-changes, into which servers merge the oldest updates when an object
// has more than ten. The managers of these fields are lost.
//
// # Bounds
//
// For each finding there are the names of the 25 worst objects. Everything that a report returns is sorted, and does
// not depend on the order of the objects.
package report
