package fieldmanager

import (
	"slices"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// prune removes from merged what the manager applied last time, dropped from this
// intent, and nobody else owns (spec rule 6.1). If it can't be told what stays, because a
// conversion fails, nothing is removed (spec rule 6.3): what nobody owns any more can be
// removed by hand, what is lost can't be brought back.
func (w *applyWrite) prune() error {
	m := w.m
	w.changes = m.compare(w.liveObject, w.mergedObject)
	w.changes.set(m.version, w.liveObject, w.mergedObject, w.walked.Comparison)
	if w.own == nil || w.own.APIVersion == m.version && w.walked.Dropped.Empty() {
		// Nothing was dropped. An intent owns every item that it owns something
		// in, so that what is owned is never removed with an item around it.
		return nil
	}
	if w.isOfOneVersion() {
		return w.pruneInPlace()
	}
	return w.pruneAtVersions()
}

// isOfOneVersion reports whether the manager and all others own fields of the write's
// version, as nearly always. If not, what stays depends on conversions of the object.
func (w *applyWrite) isOfOneVersion() bool {
	isOther := func(r managedfields.Record) bool { return r.APIVersion != w.m.version }
	return !isOther(*w.own) && !slices.ContainsFunc(w.others, isOther)
}

// pruneInPlace prunes in one walk down what was dropped ([typed.Type.Prune]).
func (w *applyWrite) pruneInPlace() error {
	m := w.m
	found, tookOwned, err := m.typ.Prune(w.walked.Merged, w.lastOwned(), w.walked.Dropped, w.owners())
	if err != nil {
		m.warning(w.own.Header(), err)
		return nil
	}
	pruned, isMap := found.(map[string]any)
	if !isMap || sameTree(pruned, w.merged) {
		return nil
	}
	if tookOwned {
		return w.setPruned(pruned)
	}
	// It only removed what the walk did not change.
	changes := w.walked.Comparison
	changes.Removed = changes.Removed.Union(m.semantics.Compare(m.typ, w.walked.Merged, pruned).Removed)
	w.merged, w.mergedTree, w.changed = pruned, nil, true
	w.changes = m.compare(w.liveObject, w.mergedObject)
	w.changes.set(m.version, w.liveObject, w.mergedObject, changes)
	return nil
}

// owners returns what every manager owns now, the intent's included.
func (w *applyWrite) owners() []typed.Owned {
	owners := make([]typed.Owned, 1, len(w.others)+2)
	owners[0] = w.walked.Owned
	if dropsMetadata(w.walked.Dropped) {
		owners = append(owners, typed.Owned{Set: w.m.identity(w.intent.tree)})
	}
	for i := range w.others {
		r := &w.others[i]
		if tree, ok := r.Tree(); ok {
			owners = append(owners, typed.Owned{Tree: tree})
		} else if set, err := r.Fields(); err == nil {
			owners = append(owners, typed.Owned{Set: set})
		}
	}
	return owners
}

// pruneAtVersions prunes at each version that has entries.
func (w *applyWrite) pruneAtVersions() error {
	if !w.live.isPlain() { // converters need trees
		if err := w.live.becomeTree(); err != nil {
			return &ObjectError{LiveObject, "", err}
		}
		if err := w.walk(); err != nil {
			return err
		}
	}
	pruned, err := w.pruneBySets()
	if err != nil {
		w.m.warning(w.own.Header(), err)
		return nil
	}
	return w.setPruned(pruned)
}

// setPruned makes pruned the merged object, with all that the intent owns.
func (w *applyWrite) setPruned(pruned map[string]any) error {
	plain, err := gostruct.Plain(pruned)
	if err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	if pruned, err = w.mergeOwned(plain.(map[string]any)); err != nil {
		return &ObjectError{AppliedObject, w.intent.name(), err}
	}
	live, err := w.liveObject()
	if err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	w.merged, w.mergedTree = managedfields.With(pruned, nil), nil
	w.changed = !typed.Equal(live.tree, w.merged)
	w.changes = w.m.compare(known(live), known(object{w.merged, w.m.version, w.m.typ}))
	return nil
}

// mergeOwned merges what the intent owns into what pruning left: it is in the object as
// the intent has it, whatever a removal emptied and a conversion lost on the way, so that
// the same intent again changes nothing (spec rule 6.4).
func (w *applyWrite) mergeOwned(pruned map[string]any) (map[string]any, error) {
	owned := w.walked.Owned.Set
	if tree := w.walked.Owned.Tree; tree != nil {
		var err error
		if owned, err = fieldpath.FromTree(tree, fieldpath.Lenient); err != nil {
			return nil, err
		}
	}
	intent := w.m.typ.Extract(w.intent.tree, owned.Leaves(), true)
	if intent == nil {
		return pruned, nil
	}
	merged, err := w.m.semantics.Merge(w.m.typ, pruned, intent)
	if err != nil {
		return nil, err
	}
	tree, _ := merged.(map[string]any)
	return tree, nil
}

// liveObject returns live as a tree, without managed fields.
func (w *applyWrite) liveObject() (object, error) {
	if w.liveTree == nil {
		tree, err := w.live.plain()
		if err != nil {
			return object{}, err
		}
		w.liveTree = managedfields.With(tree, nil)
	}
	return object{w.liveTree, w.m.version, w.m.typ}, nil
}

// mergedObject returns the merged object as a tree, without managed fields.
func (w *applyWrite) mergedObject() (object, error) {
	if w.merged == nil {
		return w.liveObject() // it is read in place, and did not change
	}
	if w.mergedTree == nil {
		tree := w.merged
		if !w.live.isPlain() {
			plain, err := gostruct.Plain(tree)
			if err != nil {
				return object{}, err
			}
			tree = plain.(map[string]any)
		}
		w.mergedTree = managedfields.With(tree, nil)
	}
	return object{w.mergedTree, w.m.version, w.m.typ}, nil
}

// dropsMetadata reports whether something is dropped of what holds the fields that nobody
// owns: only then identity says anything.
func dropsMetadata(dropped *fieldpath.Set) bool {
	for _, name := range [...]string{"apiVersion", "kind", "metadata"} {
		if member, below := dropped.At(fieldpath.Field(name)); member || !below.Empty() {
			return true
		}
	}
	return false
}

// identity returns what the intent has of the fields that nobody owns (spec rule 2.7): it
// does not drop them, nor the metadata around them.
func (m *FieldManager) identity(intent map[string]any) *fieldpath.Set {
	part := map[string]any{}
	metadata, _ := intent["metadata"].(map[string]any)
	for e, entry := range managedfields.Unowned(nil).Level() {
		if v, ok := intent[e.Text()]; ok && entry.Below.Empty() {
			part[e.Text()] = v
		}
		for below := range entry.Below.Level() {
			if v, ok := metadata[below.Text()]; ok {
				if part["metadata"] == nil {
					part["metadata"] = map[string]any{}
				}
				part["metadata"].(map[string]any)[below.Text()] = v
			}
		}
	}
	return m.typ.FieldSet(part)
}

// pruneBySets prunes with sets of whole objects, at each version that has entries.
//
//	candidates   what last owned, with the structs that held nothing else
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
	merged := object{w.merged, m.version, m.typ}.stripped()
	if err := merged.withinLimits(); err != nil {
		return nil, err
	}
	before, err := m.at(merged, last.APIVersion)
	if err != nil {
		return nil, err
	}
	candidates := before.typ.WithDeclared(last.Fields)
	pruned := before
	pruned.tree = before.less(candidates)
	if pruned, err = m.restoreOwned(before, pruned, entries); err != nil {
		return nil, err
	}
	if pruned, err = m.at(pruned, last.APIVersion); err != nil {
		return nil, err
	}
	// What is gone now and was last's goes; everything else comes back.
	gone := before.owned().Difference(pruned.owned()).Intersection(candidates)
	pruned = before
	pruned.tree, _ = before.typ.Remove(before.tree, gone).(map[string]any)
	pruned, err = m.at(pruned, m.version)
	return pruned.tree, err
}

// entriesForPrune returns the manager's last entry, and all entries as they would be
// without a prune.
func (w *applyWrite) entriesForPrune() (last managedfields.Entry, entries managedfields.Entries, err error) {
	t := w.m.typeAt(w.own.APIVersion)
	if t == nil {
		return last, nil, ErrVersionGone
	}
	if err = w.own.Reconcile(t); err != nil {
		return last, nil, err
	}
	if last, err = w.own.Entry(); err != nil {
		return last, nil, err
	}
	if entries, err = w.others.Entries(); err != nil {
		return last, nil, err
	}
	now := managedfields.Entry{Key: w.key, APIVersion: w.m.version}
	now.Fields = w.m.filter(w.m.version, w.m.typ.FieldSet(w.intent.tree))
	return last, append(entries, now), nil
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
