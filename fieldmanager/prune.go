package fieldmanager

import (
	"errors"
	"slices"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged what the manager applied last time, dropped from this intent, and nobody else owns
// (spec rule 6.1). It removes nothing if a conversion fails (spec rule 6.3): a user can remove a field by hand, but
// can't bring back one that is lost.
func (w *applyWrite) prune() error {
	if w.own == nil || w.own.APIVersion == w.m.version && w.dropped.Empty() {
		return nil // only what was dropped is removed
	}
	pruned, isDone, err := w.pruneInPlace()
	if err == nil && !isDone {
		pruned, err = w.pruneBySets()
	}
	if err != nil {
		w.m.warning(w.own, err)
		return nil
	}
	if pruned == nil {
		return nil
	}
	if !isDone {
		// The removal may have emptied what the intent owns, and a conversion may have lost it. With the intent merged
		// again, the same apply changes nothing next time (spec rule 6.4).
		if intent := w.m.typ.Extract(w.intent.tree, w.owned.Owned().Leaves(), true); intent != nil {
			merged, err := w.m.options.Semantics.Merge(w.m.typ, pruned, intent, typed.Rules{})
			if err != nil {
				return &ObjectError{AppliedObject, w.intent.name(), err}
			}
			pruned = merged.Value.(map[string]any)
		}
	}
	w.merged.tree = managedfields.With(pruned, nil)
	w.changed = !typed.Equal(w.live.stripped().tree, w.merged.tree)
	return nil
}

// pruneInPlace prunes by [goneOf], which looks at nothing but what was dropped. isDone is false if entries have several
// versions, or if goneOf can't decide.
func (w *applyWrite) pruneInPlace() (pruned map[string]any, isDone bool, err error) {
	m := w.m
	isOther := func(r managedfields.Entry) bool { return r.APIVersion != m.version }
	if isOther(*w.own) || slices.ContainsFunc(w.others, isOther) {
		return nil, false, nil
	}
	last, entries, err := w.entriesForPrune()
	if err != nil {
		return nil, false, err
	}
	tree := w.merged.stripped().tree
	f := values.NewFinder()
	gone, ok := goneOf(f, m.typ, tree, last.Owned(), w.dropped, entries.Owned(m.version))
	if !ok || gone.Empty() {
		return nil, ok, nil
	}
	pruned, _ = m.typ.Remove(tree, gone).(map[string]any)
	return pruned, true, nil
}

// goneOf returns the paths that a prune removes below v, a container that stays: of the paths in dropped, those that no
// entry owns. last is what the manager owned before, and owned what any entry owns now. For a child of v, there are
// three cases in which [applyWrite.pruneBySets], the definition, does not look at the child's siblings:
//
//   - nobody owns the child or something in it: it is removed;
//   - it is a leaf that somebody owns: it stays;
//   - it is a container that stays because somebody owns something in it: goneOf decides about its children.
//
// ok is false in all other cases, such as an empty container that an intent owns.
func goneOf(f values.Finder, t *typed.Type, v any, last, dropped, owned *fieldpath.Set) (
	gone *fieldpath.Set, ok bool) {
	var out fieldsets.Builder
	for e, entry := range dropped.Level() {
		child, times := f.Find(t, v, e)
		if times == 0 {
			continue
		}
		ct, declared := t.Child(e)
		wasOwned, lastBelow := last.At(e)
		isOwned, ownedBelow := owned.At(e)
		switch {
		case ct == nil || !wasOwned && !declared:
			return nil, false
		case !isOwned && ownedBelow.Empty():
			// A declared field in which nothing can be owned, such as an empty list, is not removed.
			if name, _ := e.Field(); declared && t.FieldSet(map[string]any{name: child}).Empty() {
				return nil, false
			}
			out.Add(e, true, nil)
		case isOwned && ownedBelow.Empty() && !hasChildren(ct, child): // it stays
		case times == 1 && staysAround(f, t, e, child, owned):
			below, ok := goneOf(f, ct, child, lastBelow, entry.Below, ownedBelow)
			if !ok {
				return nil, false
			}
			out.Add(e, false, below)
		default:
			return nil, false
		}
	}
	return out.Set(), true
}

// staysAround reports whether child, the only child that e selects in a value of type t, is a granular container that
// certainly stays: something in it is owned, and it is a declared field or is owned itself, if it is an item with its
// key fields.
func staysAround(f values.Finder, t *typed.Type, e fieldpath.Element, child any, owned *fieldpath.Set) bool {
	ct, declared := t.Child(e)
	member, below := owned.At(e)
	if ct == nil || !declared && !member || !hasChildren(ct, child) {
		return false
	}
	if key, ok := e.Key(); ok {
		for _, field := range key {
			if self, _ := below.At(fieldpath.Field(field.Name)); !self {
				return false
			}
		}
	}
	for inner, entry := range below.Level() {
		value, times := f.Find(ct, child, inner)
		if times == 0 {
			continue
		}
		it, _ := ct.Child(inner)
		if it == nil {
			it = typed.Deduced()
		}
		if list, ok := value.([]any); ok && len(list) == 0 && it.List != nil && !it.List.IsAtomic() {
			continue // nobody can own it
		}
		if entry.Member || times == 1 && staysAround(f, ct, inner, value, below) {
			return true
		}
	}
	return false
}

// hasChildren reports whether a value is a granular container with content.
func hasChildren(t *typed.Type, v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return len(x) > 0 && t.Map != nil && !t.Map.IsAtomic()
	case []any:
		return len(x) > 0 && t.List != nil && !t.List.IsAtomic()
	}
	return false
}

// pruneBySets prunes with sets of whole objects, at each version that has entries.
//
// It removes the candidates: what the last entry owned, with the structs that held nothing else. Then it puts back what
// any entry owns now, at one version after the other, and at last what was removed with a candidate but is not one.
//
// For example, v2 calls v1's field port targetPort; both have a set called env. alice applied {port: 80, env: [a, b]}
// at v1 and now applies {env: [a]}; bob owns targetPort by an apply at v2. Candidates at v1 are port, env and its
// items; without them the object is empty. At v1, alice's new entry owns env's item a, which is put back. At v2, bob's
// entry owns targetPort, which is put back. Back at v1 that is port, so only env's item b is gone.
//
// The converter meets objects without their candidates. If it rejects one, because it lacks what the version requires,
// nothing is removed.
func (w *applyWrite) pruneBySets() (map[string]any, error) {
	m := w.m
	last, entries, err := w.entriesForPrune()
	if err != nil {
		return nil, err
	}
	merged := w.merged.stripped()
	if err := merged.withinLimits(); err != nil {
		return nil, err
	}
	before, err := m.at(w.ctx, merged, last.APIVersion)
	if err != nil {
		return nil, err
	}
	candidates := before.typ.WithDeclared(last.Owned())
	pruned := before
	pruned.tree = before.less(candidates)
	if pruned, err = w.restoreOwned(before, pruned, entries); err != nil {
		return nil, err
	}
	if pruned, err = m.at(w.ctx, pruned, last.APIVersion); err != nil {
		return nil, err
	}
	// Of what is missing now, only candidates are removed.
	gone := before.owned().Difference(pruned.owned()).Intersection(candidates)
	if gone.Empty() && before.version == m.version {
		return nil, nil
	}
	pruned = before
	pruned.tree, _ = before.typ.Remove(before.tree, gone).(map[string]any)
	pruned, err = m.at(w.ctx, pruned, m.version)
	return pruned.tree, err
}

// entriesForPrune returns the manager's last entry, and all entries after an apply without a prune. The manager's also
// has metadata and the other fields that nobody owns (spec rule 2.7), because they are never removed.
func (w *applyWrite) entriesForPrune() (last managedfields.Entry, entries managedfields.Entries, err error) {
	t, err := w.m.typeAt(w.own.APIVersion)
	if err != nil {
		return last, nil, err
	}
	if err = w.own.Reconcile(t); err != nil {
		return last, nil, err
	}
	if _, err = w.own.Fields(); err == nil {
		err = w.others.Err()
	}
	if err != nil {
		return last, nil, err
	}
	now := managedfields.NewEntry(w.key, w.m.version, nil, w.owned.Owned().Union(managedfields.Unowned()))
	return *w.own, append(slices.Clip(w.others), now), nil
}

// restoreOwned puts back into pruned what merged has of it and an entry owns, at one version after the other. It begins
// at the version of pruned: a conversion may need these fields.
func (w *applyWrite) restoreOwned(merged, pruned object, entries managedfields.Entries) (object, error) {
	versions := versionsOf(entries, pruned.version)
	if len(versions) > maxVersions+1 {
		return object{}, errManyVersions
	}
	for _, version := range versions {
		at, err := w.m.at(w.ctx, merged, version)
		if errors.Is(err, ErrVersionGone) {
			continue
		}
		if err != nil {
			return object{}, err
		}
		less, err := w.m.at(w.ctx, pruned, version)
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
		if !seen[e.APIVersion] {
			seen[e.APIVersion] = true
			out = append(out, e.APIVersion)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if a == first || b != first && a < b { // no two are the same
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

// less returns the tree of o without the paths of set. Containers that held nothing else become null, which FieldSet
// counts.
func (o object) less(set *fieldpath.Set) map[string]any {
	tree, _ := o.typ.RemoveToNull(o.tree, set).(map[string]any)
	return tree
}
