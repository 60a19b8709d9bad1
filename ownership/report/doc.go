// Package report summarizes the ownership of fields in many objects: the managers, the kinds, the size of managed
// fields, and suggested actions.
//
//	r := report.New(report.Options{Now: time.Now()})
//	for object := range objects { // pages of lists
//		r.Add(ctx, report.Object{Tree: object, Types: types})
//	}
//	summary := r.Summary()
//
// Objects are added one by one and are not kept. The memory of a report depends on the numbers of managers, kinds and
// examples, not on the number of objects. A report does no I/O and has no clock.
//
// # Definitions
//
// Size is the length of an object, including its managed fields, as compact JSON. Watches and lists transfer objects in
// this form. etcd stores built-in kinds as protobuf. Protobuf makes an object smaller but keeps its FieldsV1 as JSON,
// so the share of managed fields is larger in etcd than in JSON. In the cache of an informer that strips no fields,
// their share is at least as large as in JSON.
//
// ManagedFields is the part of Size for metadata.managedFields, including its name; for a manager, it is the size of
// its entries.
//
// Fields of an entry are all its paths, including paths of items and maps that have other paths below them.
//
// LastWrite of a manager is the latest time of its entries. A server sets the time when the manager changes an object,
// but not when an apply changes only ownership, or nothing. A manager is silent if its last write is longer ago than
// Options.Silent, and all its entries have times: servers set no time for writes through the scale subresource. A
// silent manager may still apply every minute, so a suggestion to drop its entries is only a question. A report does
// not suggest dropping the entries of a silent Kubernetes component, such as kube-controller-manager or kubelet, and
// does not suggest upgrading the entries of any component. Times at or before 1970-01-01T00:00:00Z come from a stopped
// clock and count as no times. A manager whose last write is in the future is not silent.
//
// Unowned fields are the leaves of an object, by its type, that are in no entry. Fields that only a server sets
// (spec rule 2.7), and fields with their defaults, are not counted. Entries of all versions are compared by path,
// without conversion. Without a converter, fields that an entry may own under other paths at its version are not
// counted. For objects without a type, unowned fields are not counted.
//
// Shared fields are the leaves that are in entries of at least two managers. Several entries of the same manager do
// not share fields with each other.
//
// Client-side objects are the objects with the annotation of kubectl apply, or with an entry of its manager, except
// objects in which the migration would move no field. The effect of their migration is the preview of
// upgrade.ToServerSide for Options.Applier.
//
// Gone versions are versions of entries for which Options.IsServed returns false. A server can't convert the object
// to them, so it either drops these entries or keeps them unchanged.
//
// Ancient entries are the entries of the manager ancient-changes: if an object has more than ten Update entries,
// servers merge the oldest of them into such entries. The original managers of the merged fields are no longer known.
//
// # Bounds
//
// Each finding has the names of its 25 worst objects as examples. Everything in a report is sorted and does not
// depend on the order in which objects were added.
package report
