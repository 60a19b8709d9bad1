package plans

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// OwnershipChange is the change of one manager's entry. Paths are at the API version of the entry (spec rule 13.3).
// Invariants, where before and after are the field sets of the entry:
//
//	Gains   = after - before     Shares  ⊆ Gains
//	Loses   = before - after     Removes ⊆ Loses
type OwnershipChange struct {
	// Manager is the key of the entry.
	Manager managedfields.Key
	// Version is the API version of the entry after the write or, if the write removes the entry, before the write.
	Version string
	// From is the API version of the entry before the write, if the write changes the version of the entry.
	From string
	// Gains are the fields that the entry has only after the write. Shares are the gained fields that other managers
	// own, too. Only their entries of the same version are compared, unless the Converter is a
	// [fieldmanager.NoneConverter]. With a NoneConverter, entries of other versions are also compared: a gained field
	// is then in Shares if such an entry owns it, a field below it, or the whole value around it.
	Gains, Shares *fieldpath.Set
	// Loses are the fields that the entry has only before the write. Removes are the lost fields that the write removes
	// from the object.
	Loses, Removes *fieldpath.Set
}

// ownershipChanges returns how the entries of the merged object differ from the entries of live.
func (w write) ownershipChanges(merged runtime.Object) []OwnershipChange {
	before, _ := managedfields.Read(w.live) // can't fail: Apply has read live, which may be nil
	after, _ := managedfields.Read(merged)
	var wholes *fieldsets.Wholes
	if _, isSame := w.options.Converter.(fieldmanager.NoneConverter); isSame {
		wholes = &fieldsets.Wholes{FieldSet: func(version string) *fieldpath.Set {
			tree, t, err := w.At(w.ctx, merged, version)
			if err != nil {
				return nil
			}
			return t.FieldSet(tree)
		}}
	}
	out := ownershipChanges(before, after, wholes)
	removed := map[string]*fieldpath.Set{} // by version
	for i := range out {
		c := &out[i]
		if c.Loses.IsEmpty() {
			continue
		}
		version := cmp.Or(c.From, c.Version) // the version before the write
		if _, ok := removed[version]; !ok {
			removed[version] = w.removed(merged, version)
		}
		c.Removes = c.Loses.Intersection(removed[version])
	}
	return out
}

// removed returns the fields that the write removes from live at a version, without the fields that a write at that
// version resets. It returns nothing if a conversion fails.
func (w write) removed(merged runtime.Object, version string) *fieldpath.Set {
	before, t, err1 := w.At(w.ctx, w.live, version)
	after, _, err2 := w.At(w.ctx, merged, version)
	if err1 != nil || err2 != nil {
		return nil
	}
	removed := w.options.Semantics.Compare(t, before, after).Removed
	if reset := w.options.ResetFields[version]; reset != nil {
		removed = reset.Filter(removed)
	}
	return removed
}

// OwnershipChanges returns how the entries after a write, or after moves of ownership, differ from the entries before,
// in the order of managedfields.Key. Removes is not set. An entry that can't be decoded owns nothing. Shares has only
// fields that others own at the same version.
func OwnershipChanges(before, after managedfields.Entries) []OwnershipChange {
	return ownershipChanges(before, after, nil)
}

// ownershipChanges implements OwnershipChanges. If fields may have other paths at other versions, wholes is nil. If
// wholes is set, Shares also has fields that others own at other versions.
func ownershipChanges(before, after managedfields.Entries, wholes *fieldsets.Wholes) (out []OwnershipChange) {
	add := func(old, current *managedfields.Entry) {
		c := OwnershipChange{
			Manager: cmp.Or(current.Key, old.Key), Version: cmp.Or(current.APIVersion, old.APIVersion),
			Gains: current.Owned().Difference(old.Owned()), Loses: old.Owned().Difference(current.Owned()),
		}
		if old.APIVersion != "" && old.APIVersion != c.Version {
			c.From = old.APIVersion
		}
		if c.Gains.IsEmpty() && c.Loses.IsEmpty() && c.From == "" {
			return
		}
		if !c.Gains.IsEmpty() { // most changes have no gains, and there may be 10,000 of them
			c.Shares = ownedByOthers(after, c, wholes)
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
		add(old, now)
	}
	for _, j := range was {
		add(&before[j], &none)
	}
	slices.SortFunc(out, func(a, b OwnershipChange) int { return a.Manager.Compare(b.Manager) })
	return out
}

// ownedByOthers returns the gained fields of a manager that other managers own, too.
func ownedByOthers(l managedfields.Entries, c OwnershipChange, wholes *fieldsets.Wholes) *fieldpath.Set {
	var parts []*fieldpath.Set
	for i := range l {
		e := &l[i]
		isSame := e.APIVersion == c.Version
		if e.Key == c.Manager || !isSame && wholes == nil {
			continue
		}
		parts = append(parts, e.Intersection(c.Gains))
		if !isSame {
			parts = append(parts, wholes.Overlap(c.Gains.Leaves(), c.Version, e.Owned(), e.APIVersion))
		}
	}
	return fieldpath.UnionOf(parts...)
}
