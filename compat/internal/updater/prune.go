package updater

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged what the manager applied last time, dropped from
// this intent, and nobody else owns (spec rule 6): it removes all that last
// owned, puts back what is owned at each version, and then what was removed
// along with a candidate but never was last's. Where a conversion fails nothing
// is removed.
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

// restoreOwned restores fields of merged that pruned lacks and some entry owns, at one version after the other: first
// at pruned's version, so that fields which a conversion needs are restored before it.
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

// versions returns the versions of the entries: the given one first, if there is
// an entry of it, then the others in order.
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

// owned returns the paths that an intent of the whole object would own, with the
// declared fields around them.
func (o object[V]) owned() *fieldpath.Set {
	return o.typ.WithDeclared(o.typ.FieldSet(o.tree))
}

// less returns o without the paths of set, with nulls for containers that held nothing else: they are treated as
// present.
func (w *Write[V]) less(o object[V], set *fieldpath.Set) object[V] {
	return w.with(o, o.typ.RemoveToNull(o.tree, set))
}
