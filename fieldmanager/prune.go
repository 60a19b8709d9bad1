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

// prune removes from merged the fields that the manager applied last time but not this time, and that no other manager
// owns (spec rule 6.1). If a conversion fails, prune removes nothing (spec rule 6.3): a user can remove a leftover
// field, but can't restore a lost one.
func (w *applyWrite) prune() error {
	if w.own == nil || w.own.APIVersion == w.m.version && w.dropped.IsEmpty() {
		return nil // only dropped fields are removed
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

// setPruned replaces merged with the result of a prune, which has no managed fields.
func (w *applyWrite) setPruned(pruned any) {
	w.merged.tree = managedfields.With(pruned.(map[string]any), nil)
	w.changed = !typed.Equal(w.live.stripped().tree, w.merged.tree)
}

// mergeAgain merges the intent into pruned, the result of a prune, and then calls setPruned. The prune may have emptied
// fields that the intent owns, and a conversion may have lost them. The second merge restores these fields, so that the
// same apply changes nothing the next time (spec rule 6.4).
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

// goneOfDropped returns the paths that a prune removes. It visits only dropped paths. ok is false if entries have
// several versions, or if the walk can't decide; then [applyWrite.pruneBySets] decides.
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

// goneOf returns the paths that a prune removes below v, a container that stays: the paths in dropped that no entry
// owns. last has the fields that the manager owned before; owned has the fields that any entry owns now. ok is false if
// the removal of a child depends on its siblings; then [applyWrite.pruneBySets], which defines the result, decides.
func (p pruner) goneOf(t *typed.Type, v any, last, dropped, owned *fieldpath.Set) (removed *fieldpath.Set, ok bool) {
	var out fieldsets.Builder
	for e, entry := range dropped.Level() {
		child, times := p.Find(t, v, e) // the first child, if e selects several
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
			// A declared field with nothing that can be owned, such as an empty list, is not removed.
			if name, _ := e.Field(); declared && t.FieldSet(map[string]any{name: child}).IsEmpty() {
				return nil, false
			}
			out.Add(e, true, nil)
		case isOwned && ownedBelow.IsEmpty() && !hasChildren(ct, child):
			// A leaf stays if any entry owns it.
		case times == 1 && p.staysAround(t, e, child, owned):
			below, ok := p.goneOf(ct, child, lastBelow, entry.Below, ownedBelow)
			if !ok {
				return nil, false
			}
			out.Add(e, false, below)
		default: // for example, an empty container that an intent owns
			return nil, false
		}
	}
	return out.Set(), true
}

// staysAround reports whether child certainly stays. child is the only child that e selects in a value of type t. It
// stays if it is a granular container in which something is owned, and it is a declared field or is itself owned. If it
// is an item, its key fields must be owned, too.
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
			continue // can't be owned
		}
		if entry.Member || p.staysAround(ct, inner, value, below) { // an item that is not owned does not stay
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

// pruneBySets prunes with the sets of all paths of an object, at each version that has entries. It returns nil if
// nothing is removed.
//
// It first removes the candidates: the fields that the manager's last entry owned, and structs that contained nothing
// else. Then it restores the fields that any entry owns now, one version after another. Finally, it restores everything
// that was removed along with a candidate but is not a candidate.
//
// For example, v2 renames v1's field port to targetPort; both versions have a set called env. alice applied {port: 80,
// env: [a, b]} at v1, and now applies {env: [a]}; bob owns targetPort by an apply at v2. The candidates at v1 are port,
// env and its items; without them, the object is empty. At v1, alice's new entry owns env's item a, so it is restored.
// At v2, bob's entry owns targetPort, so targetPort, which is port at v1, is restored. So only env's item b is removed.
//
// The converter gets objects without their candidates. If it rejects such an object, because a field is missing that
// the version requires, nothing is removed.
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
	// Only missing paths that are candidates are removed.
	missing := before.owned().Difference(pruned.owned()).Intersection(candidates)
	if before.version == m.version {
		// A struct stays if it is in the intent and nothing in it was dropped. It seems to be missing if only empty
		// lists, in which nothing can be owned, were restored in it (doc/differences.md, 15).
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

// entriesForPrune returns the manager's last entry, and all entries as they would be after an apply without pruning. It
// adds the fields that are never owned (spec rule 2.7) to the manager's new entry, so that the prune does not remove
// them.
func (w *applyWrite) entriesForPrune() (last managedfields.Entry, entries managedfields.Entries, err error) {
	t, err := w.m.typeAt(w.own.APIVersion)
	if err == nil {
		err = w.own.Reconcile(t)
	}
	if err != nil {
		return last, nil, err
	}
	after := managedfields.NewEntry(w.key, w.m.version, nil, w.owned.Owned().Union(managedfields.Unowned()))
	return *w.own, append(slices.Clip(w.others), after), nil
}

// restoreOwned restores in pruned all fields of merged that an entry owns, one version after another. It begins with
// the version of pruned, because a conversion may need the fields that are owned at this version.
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

// versionsOf returns the versions of the entries: the given version first, if an entry has it, and then the others,
// sorted.
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

// owned returns the paths that an intent with the whole object would own, and the declared fields around them.
func (o object) owned() *fieldpath.Set {
	return o.typ.WithDeclared(o.typ.FieldSet(o.tree))
}

// less returns the tree of o without the paths of set. Containers that contained nothing else become null, so that
// FieldSet still contains them.
func (o object) less(set *fieldpath.Set) map[string]any {
	tree, _ := o.typ.RemoveToNull(o.tree, set).(map[string]any)
	return tree
}
