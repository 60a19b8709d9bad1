package fieldmanager

import (
	"errors"
	"slices"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged what the manager applied last time, dropped from this
// intent, and nobody else owns (spec rule 6.1). If it can't be told what stays, because a
// conversion fails, nothing is removed (spec rule 6.3): what nobody owns any more can be
// removed by hand, what is lost can't be brought back.
func (w *applyWrite) prune() error {
	if w.own == nil || w.own.APIVersion == w.m.version && w.dropped.Empty() {
		return nil // nothing was dropped, and nothing else goes
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
		// What the intent owns is in the object as the intent has it, whatever a removal emptied and a conversion lost on
		// the way, so that the same intent again changes nothing (spec rule 6.4).
		if intent := w.m.typ.Extract(w.intent.tree, w.owned.Leaves(), true); intent != nil {
			merged, err := w.m.options.Semantics.Merge(w.m.typ, pruned, intent, typed.Rules{})
			if err != nil {
				return &ObjectError{AppliedObject, w.intent.name(), err}
			}
			pruned = merged.Value.(map[string]any)
		}
	}
	w.merged.tree = managedfields.With(pruned, nil)
	live, err := w.liveObject()
	w.changed = !typed.Equal(live.tree, w.merged.tree)
	return err
}

// liveObject returns live without managed fields.
func (w *applyWrite) liveObject() (object, error) { return w.live.stripped(), nil }

// mergedObject returns the merged object without managed fields.
func (w *applyWrite) mergedObject() (object, error) { return w.merged.stripped(), nil }

// pruneInPlace prunes without a look at the rest of the object. isDone is false if that can't be done: entries are of
// several versions, or what was dropped is not in one of the cases of [goneOf].
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
	var f typed.Finder
	gone, ok := goneOf(&f, m.typ, tree, last.Owned(), w.dropped, entries.Owned(m.version))
	if !ok || gone.Empty() {
		return nil, ok, nil
	}
	pruned, _ = m.typ.Remove(tree, gone).(map[string]any)
	return pruned, true, nil
}

// goneOf returns what goes of v, a container that stays: what is in the manager's last entry, was dropped, and is in no
// entry now. It is the definition of [applyWrite.pruneBySets] for the cases in which a child does not depend on its
// siblings:
//
//   - nobody owns the child or something in it: it goes, with all that is in it;
//   - somebody owns it, and it is a leaf: it stays;
//   - it is a container that stays around what somebody owns: what goes is decided in it.
//
// ok is false in all other cases, such as a container that an intent owns empty.
func goneOf(f *typed.Finder, t *typed.Type, v any, last, dropped, owned *fieldpath.Set) (
	gone *fieldpath.Set, ok bool) {
	var out fieldpath.Builder
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
			// A declared field with nothing that can be owned, such as an empty list, is nobody's to remove.
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

// staysAround reports whether child, which e selects in a value of type t and selects alone, is a granular container
// that certainly stays: it is a declared field or owned itself, as a list's item with its key, and something in it is
// owned.
func staysAround(f *typed.Finder, t *typed.Type, e fieldpath.Element, child any, owned *fieldpath.Set) bool {
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
		if entry.Member && !hasChildren(it, value) ||
			times == 1 && staysAround(f, ct, inner, value, below) {
			return true
		}
	}
	return false
}

// hasChildren reports whether a value is a granular container with content.
func hasChildren(t *typed.Type, v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return len(x) > 0 && t.Map != nil && !t.Map.Atomic
	case []any:
		return len(x) > 0 && t.List != nil && !t.List.IsAtomic()
	}
	return false
}

// pruneBySets prunes with sets of whole objects, at each version that has entries.
//
//	candidates   what the last entry owned, with the structs that held nothing else
//	owned        what any entry owns now, which must stay
//	dangling     what was removed along with a candidate but was never last's
//
// Each step below is one of these: remove the candidates, put back what is owned
// at each version, put back what dangles.
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
	// What is gone now and was last's goes; everything else comes back.
	gone := before.owned().Difference(pruned.owned()).Intersection(candidates)
	if gone.Empty() && before.version == m.version {
		return nil, nil
	}
	pruned = before
	pruned.tree, _ = before.typ.Remove(before.tree, gone).(map[string]any)
	pruned, err = m.at(w.ctx, pruned, m.version)
	return pruned.tree, err
}

// entriesForPrune returns the manager's last entry, and all entries as they would be without a prune. The intent owns
// what nobody ever owns (spec rule 2.7): whatever it says of the name and the uid, they stay, and so does the metadata
// around them.
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
	now := managedfields.NewEntry(w.key, w.m.version, nil, w.owned.Union(managedfields.Unowned()))
	return *w.own, append(slices.Clip(w.others), now), nil
}

// restoreOwned puts back into pruned what it lacks of merged and some entry
// owns, at the entries' versions one after the other: first at that of pruned,
// so that fields which a conversion needs are back before there is one.
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

// less returns the tree of o without the paths of set, with nulls for containers
// that held nothing else: they count as there.
func (o object) less(set *fieldpath.Set) map[string]any {
	tree, _ := o.typ.RemoveToNull(o.tree, set).(map[string]any)
	return tree
}
