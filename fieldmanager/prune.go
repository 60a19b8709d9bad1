package fieldmanager

import (
	"slices"

	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
)

// prune removes from merged what the manager applied last time, dropped from
// this intent, and nobody else owns (spec rule 6.1). rs hold the manager's new
// entry already, which is now; last is the one before, of which removal follows the
// version. Where a conversion fails, nothing is removed (spec rule 6.3): what
// nobody owns any more can be removed by hand, what is lost can't be brought back.
//
//	candidates   what last owned, with the structs that held nothing else
//	owned        what any entry owns now, which must stay
//	dangling     what was removed along with a candidate but was never last's
//
// Each step below is one of these: remove the candidates, put back what is owned
// at each version, put back what dangles.
func (m *FieldManager) prune(merged object, rs records, now, last managedfields.Entry) object {
	if last.Version == now.Version && last.Fields.Difference(now.Fields).Empty() {
		// Nothing was dropped. An intent owns every item that it owns something
		// in, so that what is owned is never removed with an item around it.
		return merged
	}
	before, err := m.at(merged, last.Version)
	var entries managedfields.Entries
	if err == nil {
		entries, err = rs.decodeAll()
	}
	if err != nil {
		m.warning(last, err)
		return merged
	}
	pruned := before
	pruned.tree = before.less(before.typ.WithDeclared(last.Fields))

	if pruned, err = m.restoreOwned(before, pruned, entries); err == nil {
		pruned, err = m.at(pruned, last.Version)
	}
	if err != nil {
		m.warning(last, err)
		return merged
	}
	// What is gone now and was last's goes; everything else comes back.
	gone := before.owned().Difference(pruned.owned())
	gone = gone.Intersection(before.typ.WithDeclared(last.Fields))
	pruned = before
	pruned.tree, _ = before.typ.Remove(before.tree, gone).(map[string]any)

	if pruned, err = m.at(pruned, merged.version); err != nil {
		m.warning(last, err)
		return merged
	}
	return pruned
}

// restoreOwned puts back into pruned what it lacks of merged and some entry
// owns, at the entries' versions one after the other: first at that of pruned,
// so that fields which a conversion needs are back before there is one.
func (m *FieldManager) restoreOwned(merged, pruned object, entries managedfields.Entries) (object, error) {
	versions := versionsOf(entries, pruned.version)
	if len(versions) > maxVersions+1 {
		return object{}, errManyVersions
	}
	for _, version := range versions {
		at, err := m.at(merged, version)
		if isGone(err) {
			continue
		}
		if err != nil {
			return object{}, err
		}
		less, err := m.at(pruned, version)
		if err != nil {
			return object{}, err
		}
		keep := less.owned().Union(at.typ.WithDeclared(entries.Owned(version)))
		merged, pruned = at, at
		pruned.tree = at.less(at.owned().Difference(keep))
	}
	return pruned, nil
}

// versionsOf returns the versions of the entries: first the given one, if there
// is an entry of it, then the others in order.
func versionsOf(entries managedfields.Entries, first string) []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range entries {
		if !seen[e.Version] {
			seen[e.Version] = true
			out = append(out, e.Version)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == first || b != first && a < b:
			return -1
		}
		return 1
	})
	return out
}

// owned returns the paths that an intent of the whole object would own, with the
// declared fields around them.
func (o object) owned() *fieldpath.Set {
	return o.typ.WithDeclared(o.typ.FieldSet(o.tree))
}

// less returns the tree of o without the paths of set, with nulls for containers
// that held nothing else: they count as there.
func (o object) less(set *fieldpath.Set) map[string]any {
	tree, _ := o.typ.RemoveToNull(o.tree, set).(map[string]any)
	return tree
}
