package fieldmanager

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// BeforeFirstApply is the manager that comes to own, at the first apply to an
// object without entries, what is in the object already.
const BeforeFirstApply = "before-first-apply"

// unknownManager is the manager of a write that names none.
const unknownManager = "unknown"

// Apply returns live with applied, the intent of manager, merged into it, with
// the managed fields that follow. live is the stored object, or nil when there
// is none yet. applied must be of the FieldManager's kind and version and have
// no managed fields.
//
// The result is of live's Go type (of applied's when live is nil) and shares
// memory with both; the FieldsV1 of its managed fields, as maps or bytes, with other
// results. When it equals live, nothing was changed and nothing needs to be written.
//
// The error is a [conflicts.Conflicts] when other managers own fields that the
// intent would change, and force is false; an apierrors BadRequest when the
// intent is of another kind or has managed fields; and otherwise an [ObjectError],
// which says which object is at fault: with a typed.Errors in it when the object
// does not fit its type. live is never changed.
func (m *FieldManager) Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	out, _, err := m.ApplyChanged(live, applied, manager, force)
	return out, err
}

// ApplyChanged is [FieldManager.Apply], and reports whether the intent changed the object:
// more than its managed fields and the annotation of client-side apply.
func (m *FieldManager) ApplyChanged(live, applied runtime.Object, manager string, force bool) (
	out runtime.Object, changed bool, err error) {
	out, w, err := m.apply(live, applied, manager, force)
	if err != nil {
		return nil, false, err
	}
	return out, w.changed, nil
}

// ApplyIsNoOp is [FieldManager.Apply], and reports whether there is nothing to write: whether the
// result equals live, with its managed fields.
func (m *FieldManager) ApplyIsNoOp(live, applied runtime.Object, manager string, force bool) (
	out runtime.Object, isNoOp bool, err error) {
	out, w, err := m.apply(live, applied, manager, force)
	if err != nil {
		return nil, false, err
	}
	return out, w.isNoOp, nil
}

// apply is Apply, and returns how it went.
func (m *FieldManager) apply(live, applied runtime.Object, manager string, force bool) (
	runtime.Object, *applyWrite, error) {
	w, err := m.startApply(live, applied, manager, force)
	if err != nil {
		return nil, nil, err
	}
	if err := w.run(); err != nil {
		return nil, nil, err
	}
	out, err := w.finish()
	return out, w, err
}

// applyWrite is one apply on its way through the pipeline.
//
//	startApply   read both objects and live's entries; before-first-apply; it calls the next three
//	reconcile    bring the entries up to today's topology
//	walk         validate and merge the intent; what it owns, drops and changes
//	prune        remove what was dropped and nobody else owns
//	take         take what changed from others, or find the conflicts
//	finish       date the entry, keep up last-applied, default, encode
type applyWrite struct {
	m       *FieldManager
	key     managedfields.Key
	force   bool
	given   runtime.Object // live, as it was given; nil for none
	applied runtime.Object
	intent  object
	live    operand

	entries   managedfields.List // of live; in the end, those that are stored
	isCurrent bool               // entries would be written as they are in live
	own       *managedfields.Record
	others    managedfields.List // entries without own, reconciled
	kept      managedfields.List // entries without own that can't be compared

	walked     typed.Applied
	merged     map[string]any // with what is not changed as live has it
	liveTree   map[string]any // live, as a tree without managed fields; nil until it is asked for
	mergedTree map[string]any // merged, in the same way
	changed    bool           // merged differs from live
	changes    *comparisons   // how it differs
	isNoOp     bool           // nothing changes, entries included

	first     *remembered // what the walks of a manager who is new begin with; nil for nothing, and if own is not
	ownsLater bool        // what the intent owns is not known yet
	unlisted  bool        // there are conflicts that the error does not list
}

// startApply checks the request and takes it apart (spec rules 1.1, 1.2 and 1.3).
func (m *FieldManager) startApply(live, applied runtime.Object, manager string, force bool) (*applyWrite, error) {
	if applied == nil {
		return nil, apierrors.NewBadRequest("no object to apply")
	}
	w := &applyWrite{
		m: m, key: m.key(manager, managedfields.Apply), force: force, given: live, applied: applied,
	}
	var err error
	if w.intent, err = m.readIntent(applied); err != nil {
		return nil, err
	}
	if err := w.readLive(); err != nil {
		if live != nil {
			err = &ObjectError{LiveObject, "", err}
		}
		// A fault of the intent counts before one of live.
		tree, _ := treeOf(live)
		if intentErr := m.validateIntent(w.intent, tree); intentErr != nil {
			err = intentErr
		}
		return nil, err
	}
	if live != nil && len(w.entries) == 0 {
		if err := w.trackFromHere(); err != nil {
			return nil, err
		}
	}
	w.reconcile()
	if err := w.walk(); err != nil || w.isNoOp {
		return w, err
	}
	return w, w.prune()
}

// key returns the key of what manager does through this FieldManager.
func (m *FieldManager) key(manager string, op managedfields.Operation) managedfields.Key {
	if manager == "" {
		manager = unknownManager
	}
	return managedfields.KeyOf(manager, op, m.version, m.subresource)
}

// readIntent returns an intent, which is not yet validated.
func (m *FieldManager) readIntent(applied runtime.Object) (object, error) {
	tree, err := treeOf(applied)
	if err != nil {
		return object{}, &ObjectError{AppliedObject, "", err}
	}
	if !m.isOwnVersion(tree) {
		gvk := applied.GetObjectKind().GroupVersionKind()
		return object{}, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", gvk))
	}
	if v, _ := managedfields.Of(tree); v != nil {
		return object{}, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if err := checkMetadata(tree); err != nil {
		return object{}, &ObjectError{AppliedObject, "", err}
	}
	return object{tree, m.version, m.typ}, nil
}

// isOwnVersion reports whether a tree is of the FieldManager's kind and version.
func (m *FieldManager) isOwnVersion(tree map[string]any) bool {
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	return version == m.version && kind == m.kind.Kind
}

// validateIntent returns what is wrong with an intent that is applied to live, which is
// nil for nothing.
func (m *FieldManager) validateIntent(intent object, live map[string]any) error {
	if err := m.typ.Validate(intent.tree, m.intentRules(live)); err != nil {
		return &ObjectError{AppliedObject, intent.name(), err}
	}
	return nil
}

// intentRules are those of an intent that is applied to live, nil for nothing.
func (m *FieldManager) intentRules(live map[string]any) typed.Rules {
	rules := typed.Rules{Unknown: m.unknown != RefuseUnknown}
	if live != nil {
		rules.Live = live
	}
	return rules
}

// dropUnknown takes the fields that the type does not declare out of the intent.
func (w *applyWrite) dropUnknown() error {
	m := w.m
	live, err := w.live.plain()
	if err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	if err := m.validateIntent(w.intent, live); err != nil {
		return err
	}
	known, dropped := m.typ.DropUnknown(w.intent.tree, m.intentRules(live).Live)
	if m.unknown == WarnUnknown && m.warn != nil {
		for _, e := range dropped {
			m.warn(Warning{Manager: w.key, Version: m.version, Err: e})
		}
	}
	w.intent.tree, _ = known.(map[string]any)
	return nil
}

// validate checks an object that is stored, or about to be: what a server let
// in must not be refused here, so duplicates and unknown fields pass.
func (o object) validate() error {
	if err := o.typ.Validate(o.tree, typed.Rules{Duplicates: true, Unknown: true}); err != nil {
		return fmt.Errorf("%s: %w", o.name(), err)
	}
	return nil
}

// trackFromHere gives what is in live to before-first-apply: the object was
// written before anybody tracked it (spec rule 1.5).
func (w *applyWrite) trackFromHere() error {
	if w.live.isStruct && w.m.empty != nil {
		empty, err := w.m.readOperand(w.m.empty)
		if err == nil && gostruct.EqualJSON(empty.value, w.live.value) {
			return nil // it is about to be created, and holds nothing yet
		}
	}
	empty, err := w.m.emptyObject()
	if err != nil {
		return fmt.Errorf("empty object: %w", err)
	}
	live, err := w.live.plain()
	if err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	old := object{managedfields.With(live, nil), w.m.version, w.m.typ}
	if err := old.withinLimits(); err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	w.entries, w.isCurrent = w.m.track(nil, w.m.compare(known(empty), known(old)), BeforeFirstApply, nil), false
	return nil
}

// reconcile takes the manager's own entry out of the others, and brings these up to the
// topology of today. The walk follows its own as it is in live.
func (w *applyWrite) reconcile() {
	rest := w.entries
	if i := w.entries.Index(w.key); i >= 0 {
		own := w.entries[i]
		w.own = &own
		rest = slices.Delete(w.entries, i, i+1)
	}
	isCurrent := false
	w.others, w.kept, isCurrent = w.m.reconcile(rest)
	w.isCurrent = w.isCurrent && isCurrent
}

// walk walks the intent ([typed.Type.Apply]). It walks again in two rare cases: the manager's own entry can't be
// decoded, so it is ignored; or the intent has fields that the type does not declare, and the FieldManager drops those.
func (w *applyWrite) walk() error {
	m := w.m
	// What a manager who is new to the object owns is asked for when it is known that
	// there is no conflict: to make its first set costs more than the rest of the apply.
	w.ownsLater = w.own == nil && len(w.others) > 0 && !w.force && m.unownedKnown
	options := typed.ApplyOptions{
		Semantics: m.semantics, Unowned: m.unowned, Compare: len(w.others) > 0,
		ValuesOnly: w.ownsLater || !m.unownedKnown,
	}
	last := w.lastOwned()
	options.Guess = w.guess()
	walked, err := m.typ.Apply(w.live.value, w.intent.tree, last, options)
	var undecodable *typed.LastError
	if w.own != nil && errors.As(err, &undecodable) {
		w.ignoreOwn(undecodable.Err)
		last = w.lastOwned()
		walked, err = m.typ.Apply(w.live.value, w.intent.tree, last, options)
	}
	if _, ok := err.(typed.Errors); ok && m.unknown != RefuseUnknown {
		if err := w.dropUnknown(); err != nil {
			return err
		}
		walked, err = m.typ.Apply(w.live.value, w.intent.tree, last, options)
	}
	if err != nil {
		return &ObjectError{AppliedObject, w.intent.name(), err}
	}
	if !m.unownedKnown {
		w.filterOwned(&walked, last)
	}
	if w.own == nil {
		walked.Dropped = nil // it was not the manager's
	}
	w.walked, w.changed = walked, walked.Changed
	w.merged, _ = walked.Merged.(map[string]any)
	w.mergedTree = nil
	// An apply that changes nothing ends here, and returns live as it is. So nothing may
	// be left to do: the entry is of this version, all entries would be written as they
	// are, the intent owns what it did, and kubectl's annotation need not be looked at.
	w.isNoOp = w.own != nil && w.own.APIVersion == m.version && w.isCurrent && !walked.Changed && !walked.Moved &&
		!isNothing(walked.Owned) && !(w.key.Manager == kubectl && w.live.hasLastApplied())
	return nil
}

// isNothing reports whether nothing is owned.
func isNothing(o typed.Owned) bool { return len(o.Tree) == 0 && o.Set.Empty() }

// lastOwned returns what the manager's last intent owned, in the form that its entry has
// in live; nothing if it was of another version. For a manager who is new to the object it
// is what it owned of the last such object; see [firstOwned].
func (w *applyWrite) lastOwned() typed.Owned {
	if w.own == nil {
		if w.first = w.m.first.get(w.key, !w.live.isStruct); w.first != nil {
			return w.first.owned
		}
	}
	if w.own != nil && w.own.APIVersion == w.m.version {
		if tree, ok := w.own.Tree(); ok && tree != nil {
			return typed.Owned{Tree: tree}
		}
		set, err := w.own.Fields()
		if err == nil {
			return typed.Owned{Set: set}
		}
		w.ignoreOwn(err)
	}
	if w.live.isStruct {
		return typed.Owned{}
	}
	return typed.Owned{Tree: map[string]any{}}
}

// guess returns the guess that goes with [applyWrite.lastOwned]; nil for none.
func (w *applyWrite) guess() *typed.Guess {
	if w.first == nil {
		return nil
	}
	return w.first.guess
}

// ignoreOwn makes the manager's own entry one of no fields: they can't be decoded, so
// that nothing is removed because of them.
func (w *applyWrite) ignoreOwn(err error) {
	w.m.warning(w.own.Header(), err)
	w.own.SetFields(nil)
}

// filterOwned sets what the intent owns by a filter that can do anything, not just leave
// out some paths and all below them.
func (w *applyWrite) filterOwned(walked *typed.Applied, last typed.Owned) {
	set := w.m.filter(w.m.version, w.m.typ.FieldSet(w.intent.tree))
	was := last.Set
	if last.Tree != nil {
		was, _ = fieldpath.FromTree(last.Tree, fieldpath.Lenient)
	}
	was = w.m.typ.Reconcile(was)
	walked.Dropped = was.Difference(set)
	set = managedfields.Strip(set)
	walked.Owned = typed.Owned{Set: set}
	if walked.Moved = !set.Equal(was); !walked.Moved {
		walked.Owned = last
	}
}

// run takes what changed from others, and excuses the manager called kubectl conflicts
// over fields that are as client-side apply left them (spec rule 9.1).
func (w *applyWrite) run() error {
	if w.isNoOp {
		return nil
	}
	err := w.take(w.force)
	var conflicting conflicts.Conflicts
	if w.key.Manager == kubectl && !w.unlisted && errors.As(err, &conflicting) {
		live, plainErr := w.live.plain()
		if plainErr != nil {
			return plainErr
		}
		excused := w.m.clientSideApplied(object{live, w.m.version, w.m.typ}.stripped())
		if excused.Empty() {
			return err
		}
		if rest := without(conflicting, excused); len(rest) > 0 {
			return rest
		}
		return w.take(true)
	}
	return err
}

// take takes what the write changes from others, and puts the entries together. Without
// force it leaves w as it was when there is a conflict, so that [applyWrite.run] can still
// excuse the conflicts and call it again with force.
//
// The result has the entries of others first, then the manager's own, then those that
// can't be compared. The order counts for nothing: entries are sorted when they are encoded.
func (w *applyWrite) take(force bool) error {
	others := w.others
	if w.changed {
		lost := losses{refuse: !force}
		others = w.m.takeFromOthers(slices.Clone(others), w.key, w.changes, &lost)
		if len(lost.conflicts) > 0 && !force {
			w.unlisted = lost.more
			return lost.conflicts
		}
	} else if slices.ContainsFunc(others, isEmpty) {
		others = slices.DeleteFunc(slices.Clone(others), isEmpty)
	}
	if w.ownsLater {
		last := w.lastOwned()
		options := typed.ApplyOptions{Semantics: w.m.semantics, Unowned: w.m.unowned, Guess: w.guess()}
		found, err := w.m.typ.Apply(w.live.value, w.intent.tree, last, options)
		if err != nil {
			return &ObjectError{AppliedObject, w.intent.name(), err}
		}
		w.ownsLater, w.walked.Owned, w.walked.Moved = false, found.Owned, found.Moved
	}
	w.entries = make(managedfields.List, 0, len(others)+len(w.kept)+1)
	w.entries = append(w.entries, others...)
	if mine := w.ownRecord(); !mine.IsEmpty() {
		w.entries = append(w.entries, mine)
	}
	w.entries = append(w.entries, w.kept...)
	return nil
}

func isEmpty(r managedfields.Record) bool { return r.IsEmpty() }

// ownRecord returns the manager's entry. It is dated only if the object changed
// (spec rule 2.3).
func (w *applyWrite) ownRecord() managedfields.Record {
	mine := managedfields.Record{Key: w.key}
	if w.own != nil {
		mine = *w.own
	}
	if w.first != nil && !w.walked.Moved {
		mine = w.first.record(w.m)
	} else if w.walked.Moved || mine.APIVersion != w.m.version {
		owned := w.walked.Owned
		if owned.Tree != nil {
			mine = managedfields.NewTreeRecord(w.key, w.m.version, mine.Time, owned.Tree)
		} else {
			entry := managedfields.Entry{Key: w.key, APIVersion: w.m.version, Time: mine.Time, Fields: owned.Set}
			mine = managedfields.NewRecord(entry)
		}
		if w.own == nil { // the next object that it applies may be alike: see firstOwned
			w.m.first.put(w.key, w.m.version, owned, func() *typed.Guess { return w.m.guessOwned(owned) })
		}
	}
	if w.changed {
		mine.SetTime(w.m.timestamp())
	}
	return mine
}

// finish makes the object that is returned.
func (w *applyWrite) finish() (runtime.Object, error) {
	if w.live.isStruct {
		return w.finishStruct()
	}
	tree := w.merged
	if w.isNoOp {
		return like(w.given, tree)
	}
	if w.key.Manager == kubectl {
		var err error
		if tree, err = keepLastApplied(tree, w.intent.tree); err != nil {
			return nil, fmt.Errorf("%s: %w", w.intent.name(), err)
		}
	}
	shape := w.given
	if shape == nil {
		shape = w.applied
	}
	if w.changed && w.m.defaulter != nil {
		out, err := like(shape, trees.Copy(managedfields.With(tree, nil)).(map[string]any))
		if err != nil {
			return nil, err
		}
		w.m.defaulter(out)
		// A defaulter may do anything to the object. What it did to the managed fields
		// does not count: they are put in below.
		if tree, err = treeOf(out); err == nil {
			err = checkMetadata(tree)
		}
		if err != nil {
			return nil, fmt.Errorf("defaulting %s: %w", w.intent.name(), err)
		}
	}
	return like(shape, managedfields.With(tree, w.entries.EncodeTree()))
}

// finishStruct is finish for a Go struct of the FieldManager's version: what did not
// change is shared with live.
func (w *applyWrite) finishStruct() (runtime.Object, error) {
	if w.isNoOp {
		return gostruct.Copy(w.given), nil
	}
	out := gostruct.Copy(w.given)
	if w.changed {
		var err error
		if out, err = patchStruct(w.given, w.merged); err != nil {
			return nil, fmt.Errorf("%s: %w", w.intent.name(), err)
		}
	}
	if w.key.Manager == kubectl {
		if err := keepLastAppliedStruct(out, w.intent.tree); err != nil {
			return nil, fmt.Errorf("%s: %w", w.intent.name(), err)
		}
	}
	accessor, err := meta.Accessor(out)
	if err != nil {
		return nil, err
	}
	if w.changed && w.m.defaulter != nil {
		accessor.SetManagedFields(nil)
		out = out.DeepCopyObject()
		w.m.defaulter(out)
		if accessor, err = meta.Accessor(out); err != nil {
			return nil, fmt.Errorf("defaulting %s: %w", w.intent.name(), err)
		}
	}
	accessor.SetManagedFields(w.entries.Encode())
	return out, nil
}
