package smdv4

import (
	"slices"

	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged what the manager applied last time, dropped from
// this intent, and nobody else owns (spec rule 6): it removes all that last
// owned, puts back what is owned at each version, and then what was removed
// along with a candidate but never was last's. Where a conversion fails nothing
// is removed.
func (w *write) prune(merged object, last entry) object {
	before, err := w.u.at(merged, last.version)
	if err != nil {
		w.warn(last, err)
		return merged
	}
	candidates := before.typ.WithDeclared(last.set)
	pruned, err := w.restoreOwned(before, before.less(candidates))
	if err == nil {
		pruned, err = w.u.at(pruned, last.version)
	}
	if err != nil {
		w.warn(last, err)
		return merged
	}
	gone := before.owned().Difference(pruned.owned()).Intersection(candidates)
	pruned, err = w.u.at(before.with(before.typ.Remove(before.tree, gone)), w.version)
	if err != nil {
		w.warn(last, err)
		return merged
	}
	return pruned
}

// restoreOwned puts back into pruned what it lacks of merged and some entry owns,
// at one version after the other: first at that of pruned, so that fields which a
// conversion needs are back before there is one.
func (w *write) restoreOwned(merged, pruned object) (object, error) {
	for _, version := range w.versions(pruned.version) {
		at, err := w.u.at(merged, version)
		if err != nil {
			if w.u.Converter.IsMissingVersionError(err) {
				continue
			}
			return object{}, err
		}
		less, err := w.u.at(pruned, version)
		if err != nil {
			return object{}, err
		}
		var owned *fieldpath.Set
		for _, e := range w.entries {
			if e.version == version {
				owned = owned.Union(e.set)
			}
		}
		keep := less.owned().Union(at.typ.WithDeclared(owned))
		merged, pruned = at, at.less(at.owned().Difference(keep))
	}
	return pruned, nil
}

// versions returns the versions of the entries: the given one first, if there is
// an entry of it, then the others in order.
func (w *write) versions(first v4fieldpath.APIVersion) []v4fieldpath.APIVersion {
	var out []v4fieldpath.APIVersion
	for _, e := range w.entries {
		if e.version != first && !e.gone {
			out = append(out, e.version)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if slices.ContainsFunc(w.entries, func(e entry) bool { return e.version == first }) {
		out = slices.Insert(out, 0, first)
	}
	return out
}

// owned returns the paths that an intent of the whole object would own, with the
// declared fields around them.
func (o object) owned() *fieldpath.Set {
	return o.typ.WithDeclared(o.typ.FieldSet(o.tree))
}

// less returns o without the paths of set, with nulls for containers that held
// nothing else: they count as there.
func (o object) less(set *fieldpath.Set) object {
	return o.with(o.typ.RemoveToNull(o.tree, set))
}
