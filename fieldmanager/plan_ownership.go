package fieldmanager

import (
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
	changes := w.m.compare(w.ctx, w.liveObject, w.mergedObject)
	was := before.Positions()
	var out []OwnershipChange
	for i := range w.entries {
		now := &w.entries[i]
		j, there := was[now.Key]
		delete(was, now.Key)
		if now.IsUnchanged() {
			continue
		}
		var old managedfields.Entry
		if there {
			old = before[j]
		}
		if c, ok := w.ownershipChange(&old, now, changes); ok {
			out = append(out, c)
		}
	}
	var none managedfields.Entry
	for _, j := range was {
		if c, ok := w.ownershipChange(&before[j], &none, changes); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b OwnershipChange) int { return a.Manager.Compare(b.Manager) })
	return out, nil
}

// ownershipChange compares two entries of one manager, one of which may be the
// zero entry. ok is false when it owns what it owned.
func (w *applyWrite) ownershipChange(
	old, now *managedfields.Entry,
	changes *comparisons,
) (c OwnershipChange, ok bool) {
	c.Manager, c.Version = now.Key, now.APIVersion
	if c.Version == "" {
		c.Manager, c.Version = old.Key, old.APIVersion
	}
	had, err := old.Fields()
	if err != nil {
		// What it owned can't be told: it counts as nothing.
		w.m.warning(old, err)
	}
	has, err := now.Fields()
	if err != nil {
		return c, false // it can't be told either, and was kept
	}
	if old.APIVersion == now.APIVersion && had.Equal(has) {
		return c, false
	}
	c.Gains = has.Difference(had)
	c.Loses = had.Difference(has)
	if !c.Gains.Empty() {
		c.Shares = w.ownedByOthers(now.Key, now.APIVersion, c.Gains)
	}
	if !c.Loses.Empty() {
		if change := changes.at(old.APIVersion); change.err == nil {
			c.Removes = c.Loses.Intersection(change.Removed)
		}
	}
	return c, true
}

// ownedByOthers returns which paths of set, at a version, others than k own after
// the write.
func (w *applyWrite) ownedByOthers(k managedfields.Key, version string, set *fieldpath.Set) *fieldpath.Set {
	var parts []*fieldpath.Set
	for i := range w.entries {
		r := &w.entries[i]
		if r.Key != k && r.APIVersion == version {
			parts = append(parts, r.Intersection(set))
		}
	}
	return fieldpath.UnionOf(parts...)
}
