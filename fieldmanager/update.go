package fieldmanager

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Update returns now, the object that a create, update or patch is about to
// store in the place of live, with the managed fields that follow: manager owns
// what it added or changed, through an Update, and others lose what was changed
// or removed. live is nil when there is no object yet.
//
// The managed fields of now count when it has any, so that a client can edit
// them; a single empty entry drops them all. Through a subresource, live's count
// always. An object without managed fields that was not just created stays
// untracked until the first apply (spec rule 1.4).
//
// The result is of now's Go type and shares memory with it. The error is an
// [ObjectError], which says which object is at fault; live and now are never
// changed.
func (m *FieldManager) Update(live, now runtime.Object, manager string) (runtime.Object, error) {
	if !hasMetadata(now) || live != nil && !hasMetadata(live) {
		return now, nil
	}
	if out, ok := m.updateInPlace(live, now, manager); ok {
		return out, nil
	}
	newTree, err := treeOf(now)
	if err == nil {
		err = checkMetadata(newTree)
	}
	if err != nil {
		return nil, &ObjectError{NewObject, "", err}
	}
	before, created, err := m.liveOf(live)
	if err != nil {
		return nil, &ObjectError{LiveObject, "", err}
	}
	entries, keep, err := m.entriesOf(before, withReset(now, newTree))
	if err != nil {
		// Nothing can be said of entries that can't be read: they stay as they are.
		return like(now, managedfields.With(newTree, keep))
	}
	if len(entries) == 0 && !created {
		return like(now, managedfields.With(newTree, nil))
	}

	var old object
	if live != nil {
		old, err = m.objectOf(live)
	} else {
		old, err = m.emptyObject()
	}
	if err != nil {
		return nil, &ObjectError{LiveObject, "", err}
	}
	new, err := m.objectOf(now)
	if err != nil {
		return nil, &ObjectError{NewObject, "", err}
	}
	changes := m.compare(old, new)
	if err := changes.validate(); err != nil {
		return nil, err
	}
	entries = m.track(entries, changes, manager)
	return like(now, managedfields.With(newTree, entries.encode()))
}

// UpdateNoErrors is [FieldManager.Update] for servers that store an object even
// when its fields can't be tracked: on an error it returns now with the managed
// fields of live.
func (m *FieldManager) UpdateNoErrors(live, now runtime.Object, manager string) runtime.Object {
	out, err := m.Update(live, now, manager)
	if err == nil {
		return out
	}
	if live == nil {
		return now
	}
	liveTree, err := treeOf(live)
	if err != nil {
		return now
	}
	newTree, err := treeOf(now)
	if err != nil {
		return now
	}
	kept, _ := managedfields.Of(liveTree)
	list, _ := kept.([]any)
	if out, err = like(now, managedfields.With(newTree, list)); err != nil {
		return now
	}
	return out
}

// withReset returns the tree of now with the empty list of managed fields that now
// has, when it is a Go struct, whose trees leave out what is empty.
func withReset(now runtime.Object, tree map[string]any) map[string]any {
	if _, ok := now.(runtime.Unstructured); ok {
		return tree
	}
	accessor, err := meta.Accessor(now)
	if err != nil {
		return tree
	}
	if list := accessor.GetManagedFields(); list == nil || len(list) > 0 {
		return tree
	}
	return managedfields.With(tree, []any{})
}

// liveOf returns the tree of live, and whether the write creates the object: a
// stored object has a UID.
func (m *FieldManager) liveOf(live runtime.Object) (tree map[string]any, created bool, err error) {
	if live == nil {
		return nil, true, nil
	}
	if tree, err = treeOf(live); err != nil {
		return nil, false, err
	}
	metadata, _ := tree["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return tree, uid == "", nil
}

// entriesOf returns the entries that an update starts from (spec rule 2.6). When
// neither object's can be read, the error says so, and keep is what live has, to
// be stored as it is.
func (m *FieldManager) entriesOf(live, now map[string]any) (entries records, keep []any, err error) {
	if m.subresource == "" {
		v, _ := managedfields.Of(now)
		if list, ok := v.([]any); ok && managedfields.IsResetTree(list) {
			return nil, nil, nil
		}
		if entries, err = m.recordsOf(now, live); err == nil && len(entries) > 0 {
			return entries, nil, nil
		}
	}
	if entries, err = readRecords(live); err != nil {
		v, _ := managedfields.Of(live)
		keep, _ = v.([]any)
		m.warning(managedfields.Entry{Version: m.version}, err)
	}
	return entries, keep, err
}

// track returns the entries after manager made changes by an update: it owns what
// it changed, and what it owned before (spec rule 5.5).
func (m *FieldManager) track(entries records, changes *comparisons, manager string) records {
	known, kept := m.reconcile(entries)
	own := changes.at(m.version)
	key := m.key(manager, managedfields.Update)
	known = m.settle(known, key, changes, nil)

	mine := record{decoded: true, Entry: managedfields.Entry{Key: key, Version: m.version}}
	if i := known.index(key); i >= 0 {
		mine = known[i]
		known = slices.Delete(known, i, i+1)
	}
	owned := managedfields.Strip(own.changed)
	mine.gain(owned, own)
	if !owned.Empty() {
		mine.wire, mine.given, mine.Time = nil, nil, m.timestamp()
		// An entry of its own that can't be decoded is replaced.
		if i := kept.index(key); i >= 0 {
			kept = slices.Delete(kept, i, i+1)
		}
	}
	if !mine.empty() {
		known = append(known, mine)
	}
	return m.capped(append(known, kept...))
}

// gain gives r, the writer's, what a change made its own, and takes what the change
// took from everybody.
func (r *record) gain(owned *fieldpath.Set, change *comparison) {
	nobodys := change.changed.Difference(owned)
	if r.decoded {
		r.set(owned.Union(r.Fields.Difference(nobodys).Difference(change.Removed)))
		return
	}
	tree := change.Removed.TakenFrom(nobodys.TakenFrom(r.tree))
	if tree = owned.AddedTo(tree); !sameTree(tree, r.tree) {
		r.setTree(tree)
	}
}

// capped returns the records with no more updates among them than the cap
// allows (spec rule 2.5).
func (m *FieldManager) capped(rs records) records {
	updates := 0
	for i := range rs {
		if rs[i].Operation == managedfields.Update {
			updates++
		}
	}
	if updates <= m.cap {
		return rs
	}
	entries, err := rs.decodeAll()
	if err != nil {
		// What can't be decoded can't be merged either.
		return rs
	}
	at := rs.positions()
	out := make(records, 0, len(entries))
	for _, e := range managedfields.Cap(entries, m.cap) {
		r := record{Entry: e, decoded: true}
		if i, ok := at[e.Key]; ok && rs[i].Fields == e.Fields {
			r = rs[i]
		}
		out = append(out, r)
	}
	return out
}
