package updater

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged the fields that the manager applied last time, that this intent lacks, and that no other
// manager owns (spec rule 6). First it removes all fields of last from a copy of merged, and restores the fields that
// an entry owns at its version. Then it removes from merged those fields of last that the copy still lacks. If a
// conversion fails, prune removes nothing.
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

// restoreOwned returns pruned with the fields of merged that an entry owns. It restores them version by version. The
// version of pruned is first, because conversions to other versions may need the fields that are restored first.
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

// versions returns the sorted versions of the entries that are not gone. If an entry has the version first, this
// version is at the front.
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
