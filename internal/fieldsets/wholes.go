package fieldsets

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Wholes finds the values of an object that are owned as a whole, such as atomic lists. The same field may be granular
// at one version and part of a whole at another. A Wholes is not safe for concurrent use.
type Wholes struct {
	// FieldSet returns the fields that an intent with the whole object would own at a version; nil if they are unknown.
	FieldSet func(version string) *fieldpath.Set
	leaves   map[string]*fieldpath.Set // by version
}

// Around returns p or, if p is inside a value that is owned as a whole at the version, the path of that value.
func (w *Wholes) Around(p fieldpath.Path, version string) fieldpath.Path {
	leaves := w.leavesAt(version)
	for i, e := range p {
		member, below := leaves.At(e)
		if member {
			return p[:i+1]
		}
		leaves = below
	}
	return p
}

// leavesAt returns the leaves of the object at a version.
func (w *Wholes) leavesAt(version string) *fieldpath.Set {
	leaves, ok := w.leaves[version]
	if !ok {
		if w.leaves == nil {
			w.leaves = map[string]*fieldpath.Set{}
		}
		leaves = w.FieldSet(version).Leaves()
		w.leaves[version] = leaves
	}
	return leaves
}

// Overlap compares leaves with an entry. The leaves are paths at the version at. The entry is at another version, the
// argument version, and owns the fields in owned. Overlap returns two kinds of leaves: leaves inside a value that the
// entry owns as a whole, and leaves that are owned as a whole and contain fields of the entry.
func (w *Wholes) Overlap(leaves *fieldpath.Set, at string, owned *fieldpath.Set, version string) *fieldpath.Set {
	var out []fieldpath.Path
	existing := w.leavesAt(version).Intersection(owned)
	for p := range leaves.All() {
		around := w.Around(p, version)
		isInside := len(around) < len(p)
		if isInside && owned.Has(around) || !isInside && w.leavesAt(at).Has(p) && HasAtOrBelow(existing, p) {
			out = append(out, slices.Clone(p))
		}
	}
	return fieldpath.NewSet(out...)
}

// Owns reports whether an entry of the version owns p, a path below p, or a value around p that is owned as a whole.
// The argument owned has the fields of the entry.
func (w *Wholes) Owns(owned *fieldpath.Set, version string, p fieldpath.Path) bool {
	return HasAtOrBelow(owned, w.Around(p, version))
}

// Within returns the leaves that an entry of the version owns, see Owns. The argument leaves has leaves of the object.
func (w *Wholes) Within(leaves, owned *fieldpath.Set, version string) *fieldpath.Set {
	var out []fieldpath.Path
	for p := range leaves.All() {
		if w.Owns(owned, version, p) {
			out = append(out, slices.Clone(p))
		}
	}
	return fieldpath.NewSet(out...)
}

// HasAtOrBelow reports whether s contains p or a path below p.
func HasAtOrBelow(s *fieldpath.Set, p fieldpath.Path) bool {
	member := false
	for _, e := range p {
		member, s = s.At(e)
	}
	return member || !s.IsEmpty()
}
