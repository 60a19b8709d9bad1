package fieldmanager

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ownershipChanges returns how the entries of w differ from live's.
func (w *applyWrite) ownershipChanges(live runtime.Object) ([]OwnershipChange, error) {
	var before managedfields.Entries
	if !isNil(live) {
		var err error
		if before, err = entriesOf(live); err != nil {
			return nil, &ObjectError{LiveObject, "", err}
		}
	}
	out := OwnershipChanges(before, w.entries)
	changes := w.m.compare(w.ctx, w.liveObject, w.mergedObject)
	was := before.Positions()
	for i := range out {
		c := &out[i]
		if c.Loses.Empty() {
			continue
		}
		if change := changes.at(before[was[c.Manager]].APIVersion); change.err == nil {
			c.Removes = c.Loses.Intersection(change.Removed)
		}
	}
	return out, nil
}

// OwnershipChanges returns how the entries after a write, or after moves of ownership, differ from those before, in the
// order of managedfields.Key. An entry that can't be decoded owns nothing. It does not tell what is removed from the
// object.
func OwnershipChanges(before, after managedfields.Entries) (out []OwnershipChange) {
	add := func(old, now *managedfields.Entry) {
		c := OwnershipChange{
			Manager: cmp.Or(now.Key, old.Key), Version: cmp.Or(now.APIVersion, old.APIVersion),
			Gains: now.Owned().Difference(old.Owned()), Loses: old.Owned().Difference(now.Owned()),
		}
		if c.Gains.Empty() && c.Loses.Empty() && (old.APIVersion == now.APIVersion || now.APIVersion == "") {
			return
		}
		if !c.Gains.Empty() {
			c.Shares = ownedByOthers(after, c)
		}
		out = append(out, c)
	}
	was := before.Positions()
	var none managedfields.Entry
	for i := range after {
		now, old := &after[i], &none
		if j, ok := was[now.Key]; ok {
			old = &before[j]
			delete(was, now.Key)
		}
		if !now.IsUnchanged() {
			add(old, now)
		}
	}
	for _, j := range was {
		add(&before[j], &none)
	}
	slices.SortFunc(out, func(a, b OwnershipChange) int { return a.Manager.Compare(b.Manager) })
	return out
}

// ownedByOthers returns which of the fields that a manager gains others own too.
func ownedByOthers(l managedfields.Entries, c OwnershipChange) *fieldpath.Set {
	var parts []*fieldpath.Set
	for i := range l {
		if l[i].Key != c.Manager && l[i].APIVersion == c.Version {
			parts = append(parts, l[i].Intersection(c.Gains))
		}
	}
	return fieldpath.UnionOf(parts...)
}
