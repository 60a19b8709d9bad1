package fieldmanager

import (
	"errors"
	"maps"
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
	if w.own == nil || w.own.APIVersion == w.m.version && w.dropped.IsEmpty() {
		return nil // only what was dropped is removed
	}
	last, entries, err := w.entriesForPrune()
	if err != nil {
		w.m.warning(w.own, err)
		return nil
	}
	if removed, ok := w.goneOfDropped(last, entries); ok {
		if !removed.IsEmpty() {
			w.setPruned(w.m.typ.Remove(w.merged.stripped().tree, removed))
		}
		return nil
	}
	switch pruned, err := w.pruneBySets(last, entries); {
	case err != nil:
		w.m.warning(w.own, err)
	case pruned != nil:
		return w.mergeAgain(pruned)
	}
	return nil
}

// setPruned replaces what was merged, without managed fields, by what a prune left of it.
func (w *applyWrite) setPruned(pruned any) {
	w.merged.tree = managedfields.With(pruned.(map[string]any), nil)
	w.changed = !typed.Equal(w.live.stripped().tree, w.merged.tree)
}

// mergeAgain is setPruned with the intent merged again: the removal may have emptied what the intent owns, and a
// conversion may have lost it. So the same apply changes nothing next time (spec rule 6.4).
func (w *applyWrite) mergeAgain(pruned map[string]any) error {
	intent := w.m.typ.Extract(w.intent.tree, w.owned.Owned().Leaves(), true)
	if intent == nil {
		w.setPruned(pruned)
		return nil
	}
	merged, err := w.m.options.Semantics.Merge(w.m.typ, pruned, intent, typed.Rules{})
	if err != nil {
		return &ObjectError{AppliedObject, w.intent.name(), err}
	}
	w.setPruned(merged.Value)
	return nil
}

// goneOfDropped returns what a prune removes, by a walk of nothing but what was dropped. ok is false if entries have
// several versions, or if the walk can't decide: then [applyWrite.pruneBySets] does.
func (w *applyWrite) goneOfDropped(last managedfields.Entry, entries managedfields.Entries) (
	removed *fieldpath.Set, ok bool) {
	isOther := func(r managedfields.Entry) bool { return r.APIVersion != w.m.version }
	if isOther(last) || slices.ContainsFunc(entries, isOther) {
		return nil, false
	}
	p := pruner{values.NewFinder()}
	return p.goneOf(w.m.typ, w.merged.stripped().tree, last.Owned(), w.dropped, entries.OwnedAt(w.m.version))
}

// pruner prunes values of one version.
type pruner struct{ values.Finder }

// goneOf returns the paths that a prune removes below v, a container that stays: of the paths in dropped, those that no
// entry owns. last is what the manager owned before, and owned what any entry owns now. ok is false if what happens to
// a child depends on its siblings, and so on [applyWrite.pruneBySets], the definition.
func (p pruner) goneOf(t *typed.Type, v any, last, dropped, owned *fieldpath.Set) (removed *fieldpath.Set, ok bool) {
	var out fieldsets.Builder
	for e, entry := range dropped.Level() {
		child, times := p.Find(t, v, e) // the first of those that e selects
		if times == 0 {
			continue
		}
		ct, declared := t.Child(e)
		wasOwned, lastBelow := last.At(e)
		isOwned, ownedBelow := owned.At(e)
		switch {
		case ct == nil || !wasOwned && !declared:
			return nil, false
		case !isOwned && ownedBelow.IsEmpty():
			// A declared field in which nothing can be owned, such as an empty list, is not removed.
			if name, _ := e.Field(); declared && t.FieldSet(map[string]any{name: child}).IsEmpty() {
				return nil, false
			}
			out.Add(e, true, nil)
		case isOwned && ownedBelow.IsEmpty() && !hasChildren(ct, child):
			// A leaf that somebody owns stays.
		case times == 1 && p.staysAround(t, e, child, owned):
			below, ok := p.goneOf(ct, child, lastBelow, entry.Below, ownedBelow)
			if !ok {
				return nil, false
			}
			out.Add(e, false, below)
		default: // such as an empty container that an intent owns
			return nil, false
		}
	}
	return out.Set(), true
}

// staysAround reports whether child, the only child that e selects in a value of type t, is a granular container that
// certainly stays: something in it is owned, and it is a declared field or is owned itself, if it is an item with its
// key fields.
func (p pruner) staysAround(t *typed.Type, e fieldpath.Element, child any, owned *fieldpath.Set) bool {
	ct, declared := t.Child(e)
	member, below := owned.At(e)
	if ct == nil || !declared && !member || !hasChildren(ct, child) {
		return false
	}
	key, _ := e.Key()
	for _, field := range key {
		if self, _ := below.At(fieldpath.FieldElement(field.Name)); !self {
			return false
		}
	}
	for inner, entry := range below.Level() {
		value, times := p.Find(ct, child, inner)
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
		if entry.Member || p.staysAround(ct, inner, value, below) { // which is false for items
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

// pruneBySets prunes with sets of whole objects, at each version that has entries. It returns nil for no removal.
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
func (w *applyWrite) pruneBySets(last managedfields.Entry, entries managedfields.Entries) (map[string]any, error) {
	m := w.m
	merged := w.merged.stripped()
	if err := merged.withinLimits(); err != nil {
		return nil, err
	}
	before, err := m.atVersion(w.ctx, merged, last.APIVersion)
	if err != nil {
		return nil, err
	}
	candidates := before.typ.WithDeclared(last.Owned())
	pruned := before
	pruned.tree = before.less(candidates)
	if pruned, err = w.restoreOwned(before, pruned, entries); err != nil {
		return nil, err
	}
	if pruned, err = m.atVersion(w.ctx, pruned, last.APIVersion); err != nil {
		return nil, err
	}
	// Only candidates are removed among the missing paths.
	missing := before.owned().Difference(pruned.owned()).Intersection(candidates)
	if before.version == m.version {
		// A struct that is applied again, with nothing in it dropped, stays, although it seems to be missing if only empty
		// lists, in which nothing can be owned, were put back into it (doc/differences.md, 15).
		missing = missing.Difference(w.owned.Owned().Difference(m.typ.WithDeclared(w.dropped)))
		if missing.IsEmpty() {
			return nil, nil
		}
	}
	pruned = before
	pruned.tree, _ = before.typ.Remove(before.tree, missing).(map[string]any)
	pruned, err = m.atVersion(w.ctx, pruned, m.version)
	return pruned.tree, err
}

// entriesForPrune returns the manager's last entry, and all entries after an apply without a prune. The manager's also
// has metadata and the other fields that nobody owns (spec rule 2.7), because they are never removed.
func (w *applyWrite) entriesForPrune() (last managedfields.Entry, entries managedfields.Entries, err error) {
	t, err := w.m.typeAt(w.own.APIVersion)
	if err == nil {
		err = w.own.Reconcile(t)
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
		full, err := w.m.atVersion(w.ctx, merged, version)
		if errors.Is(err, ErrVersionGone) {
			continue
		}
		if err != nil {
			return object{}, err
		}
		less, err := w.m.atVersion(w.ctx, pruned, version)
		if err != nil {
			return object{}, err
		}
		keep := less.owned().Union(full.typ.WithDeclared(entries.OwnedAt(version)))
		merged, pruned = full, full
		pruned.tree = full.less(full.owned().Difference(keep))
	}
	return pruned, nil
}

// versionsOf returns the versions of the entries: first the given one, if there is an entry of it, then the others in
// order.
func versionsOf(entries managedfields.Entries, first string) (out []string) {
	others := map[string]bool{}
	for _, e := range entries {
		others[e.APIVersion] = true
	}
	if others[first] {
		out = append(out, first)
		delete(others, first)
	}
	return append(out, slices.Sorted(maps.Keys(others))...)
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
