package updater

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged the fields that the manager applied last time, that this intent lacks, and that no other
// manager owns (spec rule 6). It first removes all fields that last owned. It then restores the fields that are owned
// at each version, and the fields that were removed with them although last never owned them. If a conversion fails,
// nothing is removed.
func (w *Write[V]) prune(merged object[V], last Entry) object[V] {
	kept := func(err error) object[V] {
		w.host.Warn(last.Name, last.Version, err)
		return merged
	}
	before, err := w.at(merged, last.Version)
	if err != nil {
		return kept(err)
	}
	candidates := before.typ.WithDeclared(last.Set)
	pruned, err := w.restoreOwned(before, w.less(before, candidates))
	if err == nil {
		pruned, err = w.at(pruned, last.Version)
	}
	if err != nil {
		return kept(err)
	}
	missing := before.owned().Difference(pruned.owned()).Intersection(candidates)
	pruned, err = w.at(w.with(before, before.typ.Remove(before.tree, missing)), w.version)
	if err != nil {
		return kept(err)
	}
	return pruned
}

// restoreOwned restores fields of merged that pruned lacks and that an entry owns, one version after another: first at
// the version of pruned, so that fields which a conversion needs are restored before that conversion.
func (w *Write[V]) restoreOwned(merged, pruned object[V]) (object[V], error) {
	for _, version := range w.versions(pruned.version) {
		converted, err := w.at(merged, version)
		if err != nil {
			if w.host.IsMissingVersionError(err) {
				continue
			}
			return object[V]{}, err
		}
		less, err := w.at(pruned, version)
		if err != nil {
			return object[V]{}, err
		}
		var owned *fieldpath.Set
		for _, e := range w.entries {
			if e.Version == version {
				owned = owned.Union(e.Set)
			}
		}
		keep := less.owned().Union(converted.typ.WithDeclared(owned))
		merged, pruned = converted, w.less(converted, converted.owned().Difference(keep))
	}
	return pruned, nil
}

// versions returns the sorted versions of the entries that are not gone, with the given version at the front if an
// entry has it.
func (w *Write[V]) versions(first string) []string {
	var out []string
	for _, e := range w.entries {
		if e.Version != first && !e.gone {
			out = append(out, e.Version)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if slices.ContainsFunc(w.entries, func(e Entry) bool { return e.Version == first }) {
		out = slices.Insert(out, 0, first)
	}
	return out
}

// owned returns the paths that an intent with the whole object would own, and the declared fields around them.
func (o object[V]) owned() *fieldpath.Set {
	return o.typ.WithDeclared(o.typ.FieldSet(o.tree))
}

// less returns o without the paths of set. Containers that contained nothing else become null, so that they are still
// present.
func (w *Write[V]) less(o object[V], set *fieldpath.Set) object[V] {
	return w.with(o, o.typ.RemoveToNull(o.tree, set))
}
