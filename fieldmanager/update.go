package fieldmanager

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// UpdateOptions are the options of one create, update or patch.
type UpdateOptions struct {
	// Manager is the name of the manager that writes. An empty name means "unknown".
	Manager string
}

// Update computes the managed fields of obj, the object with which a create, update or patch is about to replace live.
// The manager owns the fields that it added or changed, in an Update entry. Other managers lose the fields that it
// changed or removed. live is nil if the object does not exist yet.
//
// For a subresource, Update starts from live's managed fields. For the main resource, it starts from obj's managed
// fields, so that a client can edit them: an empty list, or a list with one empty entry, removes all managed fields. If
// obj has no list, or a list that can't be read, Update starts from live's managed fields. An object with a UID and
// without managed fields is not tracked until its first apply (spec rule 1.4).
//
// The object of the result has obj's Go type; it shares memory with obj, and its managed fields share memory with live.
// The error is an [ObjectError], which says which object is at fault, or an apierrors BadRequest if the manager's name
// is not valid. live and obj are never changed. ctx is passed to the Converter.
func (m *FieldManager) Update(ctx context.Context, live, obj runtime.Object, options UpdateOptions) (Result, error) {
	if err := m.checkManager(options.Manager); err != nil {
		return Result{}, err
	}
	if !hasMetadata(obj) || live != nil && !hasMetadata(live) {
		return Result{Object: obj, ObjectChanged: true}, nil
	}
	w, err := m.startUpdate(ctx, live, obj)
	switch {
	case err != nil:
		return Result{}, err
	case w.entriesErr != nil:
		// Entries that can't be read are kept unchanged.
		m.warning(&managedfields.Entry{APIVersion: m.version}, w.entriesErr)
		w.same = sameButEntries(live, obj)
		out, err := managedfields.Copy(obj, live)
		return w.result(out, err, nil)
	case len(w.entries) == 0 && !w.isCreate:
		w.same = sameButEntries(live, obj)
		out, err := managedfields.Entries(nil).Into(obj)
		return w.result(out, err, nil)
	}
	entries, ok := w.created(options.Manager)
	if !ok {
		changes, err := w.compare()
		if err != nil {
			return Result{}, err
		}
		entries = m.track(w.entries, changes, options.Manager)
	}
	out, err := entries.Into(obj)
	return w.result(out, err, entries.Get(m.key(options.Manager, metav1.ManagedFieldsOperationUpdate)))
}

// result returns the result of an update. own is the entry of the manager; nil if there is none.
func (w *updateWrite) result(out runtime.Object, err error, own *managedfields.Entry) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	r := Result{Object: out, ObjectChanged: !w.same, own: own}
	if w.same {
		r.live = w.live
	}
	return r, nil
}

// sameButEntries reports whether two objects are equal except for their managed fields.
func sameButEntries(a, b runtime.Object) bool {
	x, err1 := gostruct.Tree(a)
	y, err2 := gostruct.Tree(b)
	return err1 == nil && err2 == nil && equalButEntries(x, y)
}

func equalButEntries(x, y map[string]any) bool {
	return typed.Equal(managedfields.With(x, nil), managedfields.With(y, nil))
}

// UpdateNoErrors is [FieldManager.Update] for servers that store an object even if its fields can't be tracked: after
// an error, it calls Errors of [Options], and returns obj with live's managed fields.
func (m *FieldManager) UpdateNoErrors(
	ctx context.Context, live, obj runtime.Object, options UpdateOptions,
) runtime.Object {
	result, err := m.Update(ctx, live, obj, options)
	if err == nil {
		return result.Object
	}
	if m.options.Errors != nil {
		m.options.Errors(obj, err)
	}
	if out, err := managedfields.Copy(obj, live); err == nil {
		return out
	}
	return obj
}

// updateWrite is the state of one update in the pipeline.
//
//	startUpdate   read the entries that the update starts from: the new object's, or live's
//	created       if the object is new and a Go struct, make its entry, and skip the comparison
//	compare       compare both objects, and validate the parts that changed
//	track         make the writer own the fields that it changed, and take them from other managers
type updateWrite struct {
	m         *FieldManager
	ctx       context.Context
	live, obj runtime.Object // live is nil if the object does not exist yet
	isCreate  bool

	entries    managedfields.Entries
	entriesErr error // why live's entries can't be read, if the update starts from them
	same       bool  // the objects are equal except for managed fields; set by the comparison
}

// startUpdate reads the entries from which an update starts (spec rule 2.6).
func (m *FieldManager) startUpdate(ctx context.Context, live, obj runtime.Object) (*updateWrite, error) {
	w := &updateWrite{m: m, ctx: ctx, live: live, obj: obj, isCreate: true}
	if err := checkHolder(obj); err != nil {
		return nil, &ObjectError{NewObject, "", err}
	}
	if live != nil {
		if err := checkHolder(live); err != nil {
			return nil, &ObjectError{LiveObject, "", err}
		}
		if accessor, err := meta.Accessor(live); err == nil {
			w.isCreate = accessor.GetUID() == ""
		}
	}
	if m.options.Subresource == "" && isReset(obj) {
		return w, nil
	}
	if live != nil {
		w.entries, w.entriesErr = managedfields.Read(live)
	}
	if m.options.Subresource == "" {
		// If the entries in the request can't be read, live's entries are used.
		if l, _ := managedfields.Read(obj); len(l) > 0 && l.Normalize(w.entries, m.typeAt) == nil {
			w.entries, w.entriesErr = l, nil
		}
	}
	return w, nil
}

// isReset reports whether an object from a client asks to clear all managed fields (spec rule 2.6): its list is empty,
// or has one empty entry. A missing list is no such request, because clients that do not know the field send no list.
func isReset(obj runtime.Object) bool {
	if u, ok := obj.(runtime.Unstructured); ok {
		v, _ := managedfields.Of(u.UnstructuredContent())
		list, _ := v.([]any)
		return hasNone(list, func(entry any) bool {
			m, ok := entry.(map[string]any)
			return ok && len(m) == 0
		})
	}
	accessor, err := meta.Accessor(obj)
	return err == nil && hasNone(accessor.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry == metav1.ManagedFieldsEntry{}
	})
}

// hasNone reports whether a list is not nil, and has no entries or only one empty entry.
func hasNone[T any](list []T, isEmpty func(T) bool) bool {
	return list != nil && (len(list) == 0 || len(list) == 1 && isEmpty(list[0]))
}

// checkHolder returns the reason why an object can't have managed fields; nil if it can.
func checkHolder(obj runtime.Object) error {
	if !isUnstructured(obj) && !gostruct.IsNil(obj) {
		_, err := meta.Accessor(obj)
		return err
	}
	tree, err := gostruct.Tree(obj)
	if err == nil {
		err = checkMetadata(tree)
	}
	return err
}

// created returns the entries of a Go struct that is created without entries: one entry of the writer. ok is false for
// other objects, and for structs that must be compared as trees.
func (w *updateWrite) created(manager string) (l managedfields.Entries, ok bool) {
	m := w.m
	live, isStruct := w.structs()
	if !isStruct || !w.isCreate || len(w.entries) > 0 || m.options.Semantics != nil {
		return nil, false
	}
	fieldsV1, ok := gostruct.Added(m.typ, live, w.obj, managedfields.Unowned(), m.options.ResetFields[m.version])
	if !ok {
		return nil, false
	}
	key := m.key(manager, metav1.ManagedFieldsOperationUpdate)
	l = managedfields.Entries{managedfields.NewEntry(key, m.version, m.timestamp(), nil)}
	if hooks.SetEncoded(&l[0], fieldsV1); l[0].IsEmpty() {
		return nil, true
	}
	return l, true
}

// compare compares both objects, and validates what the write changes: existing violations are not the writer's fault
// (spec rule 1.3). If both objects are Go structs, only the parts that differ are converted to trees.
func (w *updateWrite) compare() (*comparisons, error) {
	m := w.m
	changes := &comparisons{m: m, ctx: w.ctx, read: w.read}
	live, isStruct := w.structs()
	before, after := m.rawTree(w.live), m.rawTree(w.obj)
	isRead := before != nil && after != nil
	if isStruct {
		var err error
		before, after, err = gostruct.Diff(m.typ, live, w.obj, managedFieldsPath...)
		isRead = err == nil // otherwise, reading the objects below returns the error
	}
	if !isRead {
		old, updated, err := changes.objects(m.version)
		if err != nil {
			return nil, err
		}
		before, after = old.tree, updated.tree
	}
	found, ok := values.CompareAndValidate(m.options.Semantics, m.typ, before, after, managedFieldsPath...)
	if !ok {
		return w.refuse(changes)
	}
	w.same = w.live != nil && found.IsUnchanged() && (!found.Inexact || equalButEntries(before, after))
	changes.add(comparison{version: m.version, Comparison: found})
	return changes, nil
}

// rawTree returns the tree of an unstructured object, including its managed fields, which the comparison leaves out. It
// returns nil if the object does not have the FieldManager's kind and version, if its type does not have granular
// metadata, or if its metadata has fewer than two fields.
func (m *FieldManager) rawTree(obj runtime.Object) map[string]any {
	u, ok := obj.(runtime.Unstructured)
	if !ok || !m.isOwnVersion(u.UnstructuredContent()) {
		return nil
	}
	tree := u.UnstructuredContent()
	metadata, _ := tree["metadata"].(map[string]any)
	metadataType, _ := m.typ.Child(fieldpath.FieldElement("metadata"))
	isGranular := metadataType == nil || metadataType.Map != nil && !metadataType.Map.IsAtomic()
	if !isGranular || len(metadata) < 2 {
		return nil
	}
	return tree
}

// structs returns live or, if live is nil, the empty object. ok reports whether this object and the new object are Go
// structs of the FieldManager's version.
func (w *updateWrite) structs() (live runtime.Object, ok bool) {
	live = cmp.Or(w.live, w.m.before)
	return live, w.m.isOwnStruct(w.obj) && w.m.isOwnStruct(live)
}

// read returns both objects without their managed fields, at the version of the FieldManager.
func (w *updateWrite) read() (old, updated object, err error) {
	if w.live == nil {
		old, err = w.m.emptyObject(w.ctx)
	} else {
		old, err = w.m.stripped(w.ctx, w.live)
	}
	if err != nil {
		return old, updated, &ObjectError{LiveObject, "", err}
	}
	if updated, err = w.m.stripped(w.ctx, w.obj); err != nil {
		return old, updated, &ObjectError{NewObject, "", err}
	}
	return old, updated, nil
}

// refuse returns the reason why [values.CompareAndValidate] rejected an update. If it finds no fault in either object,
// the update is not rejected after all, and refuse returns changes.
func (w *updateWrite) refuse(changes *comparisons) (*comparisons, error) {
	before, after, err := changes.objects(w.m.version)
	if err != nil {
		return nil, err
	}
	if err := after.validate(); err != nil {
		return nil, &ObjectError{NewObject, "", err}
	}
	if err := before.withinLimits(); err != nil {
		return nil, &ObjectError{LiveObject, "", err}
	}
	w.same = w.live != nil && typed.Equal(before.tree, after.tree)
	return changes, nil
}

// track returns the entries after an update by manager: the manager owns the fields that it changed, and keeps those
// that it owned before (spec rule 5.5). entries must not be used afterwards.
//
// For example, alice owns .spec.replicas and .spec.paused by an apply, and ctl owns .spec.image by an update. ctl sets
// replicas, and removes paused and image:
//
//	changed  .spec.replicas                  ctl owns it now, alice loses it: an update has no conflicts
//	removed  .spec.paused .spec.image        alice loses the first, ctl the second
//	after    ctl owns .spec.replicas         alice's entry owns nothing any more, so it is removed
func (m *FieldManager) track(
	entries managedfields.Entries, changes *comparisons, manager string,
) managedfields.Entries {
	reconciled, kept, _ := m.reconcile(entries)
	own := changes.atVersion(m.version)
	key := m.key(manager, metav1.ManagedFieldsOperationUpdate)
	reconciled = m.takeFromOthers(reconciled, key, changes, nil)

	mine := managedfields.NewEntry(key, m.version, nil, nil)
	if e := reconciled.Get(key); e != nil {
		mine = *e
		reconciled = reconciled.Without(key)
	}
	owned := own.addedOrModified.Difference(managedfields.Unowned()) // nobody owns metadata.name
	// The entry may own fields that are never added to an entry, such as metadata.name. It loses these if the write
	// changes them.
	mine.Subtract(own.addedOrModified.Difference(owned))
	mine.Subtract(own.Removed)
	mine.Add(owned)
	if !owned.IsEmpty() { // an update that only removes fields does not change the time (spec rule 2.3)
		mine.SetTime(m.timestamp())
		// An entry that can't be decoded is replaced.
		kept = kept.Without(key)
	}
	if !mine.IsEmpty() {
		reconciled = append(reconciled, mine)
	}
	return append(reconciled, kept...).Cap(m.options.Cap)
}
