package fieldmanager

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// BeforeFirstApply is the manager that owns what was in an object without entries before its first apply.
const BeforeFirstApply = "before-first-apply"

// unknownManager is the manager of a write that names none.
const unknownManager = "unknown"

// ApplyOptions are the options of one apply.
type ApplyOptions struct {
	// Manager is who applies. An empty name is "unknown".
	Manager string
	// Force takes the fields in conflict from their owners.
	Force bool
}

// Result is what a write returns.
type Result struct {
	// Object is the object to store, with its managed fields.
	Object runtime.Object
	// ObjectChanged says that the write changed the object. Managed fields and the annotation of client-side apply do not
	// count.
	ObjectChanged bool
	// Conflicts are what a forced apply took from others, and would not have got without force. An update has no
	// conflicts.
	Conflicts conflicts.Conflicts

	own *managedfields.Entry // the manager's; nil for none

	isNoOp bool           // found on the way
	live   runtime.Object // nil if Object differs from it, managed fields aside
}

// String returns what a log wants of a result: whether there is something to store, and what a forced apply took from
// others. It has no values of objects.
func (r Result) String() string {
	text := "ownership only"
	switch {
	case r.IsNoOp():
		text = "unchanged"
	case r.ObjectChanged:
		text = "changed"
	}
	const maxNamed = 10
	for i, c := range r.Conflicts[:min(len(r.Conflicts), maxNamed)] {
		text += [...]string{"; taken: ", ", "}[min(i, 1)] + c.String()
	}
	return text
}

// IsNoOp reports whether there is nothing to store: there is a live object, and Object, as it was returned, equals it,
// managed fields included. It compares the managed fields if the write did not have to.
func (r Result) IsNoOp() bool {
	return r.isNoOp || r.live != nil && managedfields.Equal(r.live, r.Object, false)
}

// Owned returns the set of the manager's entry after the write, at the version of the FieldManager. It decodes the
// entry if the write did not have to. The entry shares memory with Object, which must not be changed before.
func (r Result) Owned() *fieldpath.Set {
	if r.own == nil {
		return nil
	}
	own := *r.own // decoding changes an entry, and several goroutines may read a result
	return own.Owned()
}

// Apply merges applied, the intent of a manager, into live, and finds the managed fields that follow. live is the
// stored object, or nil when there is none yet. applied must be of the FieldManager's kind and version and have no
// managed fields.
//
// The object of the result is of live's Go type (of applied's when live is nil) and shares memory with both, and with
// nothing else.
//
// The error is a [conflicts.Conflicts] when other managers own fields that the intent would change, and Force is false;
// an apierrors BadRequest when the intent is of another kind or has managed fields, or the name of the manager is not
// valid (see managedfields.ValidateManager); and otherwise an [ObjectError],
// which says which object is at fault: with a typed.Errors in it when the object does not fit its type. live is never
// changed. ctx goes to the Converter.
func (m *FieldManager) Apply(ctx context.Context, live, applied runtime.Object, options ApplyOptions) (Result, error) {
	key := m.key(options.Manager, metav1.ManagedFieldsOperationApply)
	w := &applyWrite{m: m, ctx: ctx, key: key, force: options.Force, given: live, applied: applied}
	if err := w.read(); err != nil {
		return Result{}, err
	}
	if err := w.merge(); err != nil {
		return Result{}, err
	}
	if w.isNoOp {
		return w.result()
	}
	if err := w.prune(); err != nil {
		return Result{}, err
	}
	if err := w.setOwners(); err != nil {
		return Result{}, err
	}
	return w.result()
}

// applyWrite is one apply on its way through the pipeline.
//
//	read         check the request, and read both objects and live's entries; before-first-apply
//	merge        validate and merge the intent; what it owns and dropped
//	prune        remove what was dropped and nobody else owns
//	setOwners    take what changed from others, or find the conflicts; make and date the manager's entry
//	result       keep up last-applied, default, encode
type applyWrite struct {
	m       *FieldManager
	ctx     context.Context
	key     managedfields.Key
	force   bool
	given   runtime.Object // live, as it was given; nil for none
	applied runtime.Object
	intent  object // applied
	live    object // given, or the empty object

	entries   managedfields.Entries // live's; from setOwners on, those to store
	isCurrent bool                  // live has its entries as they would be written
	own       *managedfields.Entry  // the manager's; nil for none
	others    managedfields.Entries // entries without own, reconciled
	kept      managedfields.Entries // entries without own that can't be compared, and are stored as they are

	owned     managedfields.Entry // what the intent owns
	isOwned   bool                // own owns the same, at this version
	dropped   *fieldpath.Set      // what its manager owned before and the intent does not
	merged    object              // live itself unless changed
	changed   bool                // merged differs from live
	annotated bool                // the annotations of the object to store differ from merged's
	isNoOp    bool                // nothing changes, entries included: live is returned as it is
	lost      losses              // what others lose, or what is in conflict
}

// read checks the request, and reads both objects and the entries (spec rules 1.1, 1.2 and 1.3).
func (w *applyWrite) read() (err error) {
	m := w.m
	if w.applied == nil {
		return apierrors.NewBadRequest("no object to apply")
	}
	if err := m.checkManager(w.key.Manager); err != nil {
		return err
	}
	if w.intent, err = m.readIntent(w.applied); err != nil {
		return err
	}
	if w.given == nil {
		w.live, err = m.emptyObject(w.ctx)
		return err
	}
	if err = w.readLive(); err != nil {
		// A fault of the intent counts before one of live.
		if intentErr := m.typ.Validate(w.intent.tree, typed.Rules{AllowUnknown: !m.refusesUnknown()}); intentErr != nil {
			return &ObjectError{AppliedObject, w.intent.name(), intentErr}
		}
		return &ObjectError{LiveObject, "", err}
	}
	if len(w.entries) == 0 {
		if err := w.giveToBeforeFirstApply(); err != nil {
			return err
		}
	}
	if e := w.entries.Get(w.key); e != nil {
		own := *e
		w.own = &own
	}
	isCurrent := false
	w.others, w.kept, isCurrent = m.reconcile(w.entries.Without(w.key))
	w.isCurrent = w.isCurrent && isCurrent
	return nil
}

// readLive reads a stored object and its entries.
func (w *applyWrite) readLive() (err error) {
	if err = checkHolder(w.given); err == nil {
		w.isCurrent, err = hooks.ReadEntries(w.given, &w.entries)
	}
	if err == nil {
		w.live, err = w.m.objectOf(w.ctx, w.given)
	}
	return err
}

// key returns the key of what manager does through this FieldManager.
func (m *FieldManager) key(manager string, op metav1.ManagedFieldsOperationType) managedfields.Key {
	return managedfields.KeyOf(cmp.Or(manager, unknownManager), op, m.version, m.options.Subresource)
}

// readIntent returns an intent, which is not yet validated.
func (m *FieldManager) readIntent(applied runtime.Object) (object, error) {
	tree, err := gostruct.Tree(applied)
	if err != nil {
		return object{}, &ObjectError{AppliedObject, "", err}
	}
	if !m.isOwnVersion(tree) {
		gvk := applied.GetObjectKind().GroupVersionKind()
		text := fmt.Sprintf("invalid object type: %v", gvk) // upstream's
		if !m.asUpstream && (gvk.Version == "" || gvk.Kind == "") {
			text += fmt.Sprintf(": expected apiVersion %s and kind %s", m.version, m.kind.Kind)
		}
		return object{}, apierrors.NewBadRequest(text)
	}
	if v, _ := managedfields.Of(tree); v != nil {
		return object{}, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	intent := object{tree, m.version, m.typ}
	if err := checkMetadata(tree); err != nil {
		return object{}, &ObjectError{AppliedObject, intent.name(), err}
	}
	return intent, nil
}

// isOwnVersion reports whether a tree is of the FieldManager's kind and version.
func (m *FieldManager) isOwnVersion(tree map[string]any) bool {
	return tree["apiVersion"] == any(m.version) && tree["kind"] == any(m.kind.Kind)
}

// validate checks an object that is stored. It allows duplicates and unknown fields, because the server accepted them.
func (o object) validate() error {
	if err := o.typ.Validate(o.tree, typed.Rules{AllowDuplicates: true, AllowUnknown: true}); err != nil {
		return fmt.Errorf("%s: %w", o.name(), err)
	}
	return nil
}

// giveToBeforeFirstApply makes an entry of before-first-apply, which owns what is in live: nobody tracked the writes
// before this one (spec rule 1.5).
func (w *applyWrite) giveToBeforeFirstApply() error {
	old := w.live.stripped()
	if w.m.empty != nil && typed.Equal(w.m.empty, old.tree) {
		return nil // as in most servers
	}
	empty, err := w.m.emptyObject(w.ctx)
	if err != nil {
		return fmt.Errorf("empty object: %w", err)
	}
	if typed.Equal(empty.tree, old.tree) {
		return nil // the object is about to be created
	}
	if err := old.withinLimits(); err != nil {
		return &ObjectError{LiveObject, "", err}
	}
	changes := &comparisons{m: w.m, ctx: w.ctx, old: empty, now: old}
	w.entries, w.isCurrent = w.m.track(nil, changes, BeforeFirstApply), false
	return nil
}

// merge merges the intent into live, and finds what the intent owns and dropped.
func (w *applyWrite) merge() error {
	merged, unknown, err := w.mergeIntent()
	if err != nil {
		return &ObjectError{AppliedObject, w.intent.name(), err}
	}
	w.merged = object{merged.Value.(map[string]any), w.m.version, w.m.typ}
	w.changed = merged.Changed
	w.owned = managedfields.NewEntry(w.key, w.m.version, nil, nil)
	hooks.SetEncoded(&w.owned, merged.FieldsV1)
	if w.m.options.FieldValidation == metav1.FieldValidationWarn {
		for _, e := range unknown {
			w.m.warning(&w.owned, e)
		}
	}
	w.compareOwn()
	w.isNoOp = !w.changed && w.isOwned && w.leavesEntries() && !w.mayKeepLastApplied()
	return nil
}

// mergeIntent merges the intent into live. If that fails, it tries again without the fields that the type does not
// declare, unless they are refused. They are taken out of the intent. If what is left is valid, unknown has what is
// wrong with these fields: that they are not declared, or rarely what was found before that, such as a name that is too
// long.
func (w *applyWrite) mergeIntent() (merged typed.Merged, unknown typed.Errors, err error) {
	m := w.m
	rules := typed.Rules{Except: managedfields.Unowned(), Filter: m.options.ResetFields[m.version]}
	merged, err = m.options.Semantics.Merge(m.typ, w.live.tree, w.intent.tree, rules)
	unknown, isInvalid := err.(typed.Errors)
	if !isInvalid || m.refusesUnknown() {
		return merged, nil, err
	}
	declared := values.DropUnknown(m.typ, w.intent.tree, w.live.tree)
	w.intent.tree, _ = declared.(map[string]any)
	merged, err = m.options.Semantics.Merge(m.typ, w.live.tree, declared, rules)
	return merged, unknown, err
}

// compareOwn adapts the manager's entry to the topology of today's type, if it is of this version. It finds out whether
// the entry owns what the intent does, and what it owns that the intent dropped.
func (w *applyWrite) compareOwn() {
	if w.own == nil || w.own.APIVersion != w.m.version {
		return
	}
	if err := w.own.Reconcile(w.m.typ); err != nil {
		// It can't be decoded, and owns nothing from now on, so that nothing is removed because of it.
		w.m.warning(w.own, err)
		w.own.SetFieldSet(nil)
	}
	if w.isOwned = w.own.OwnsSame(&w.owned); !w.isOwned {
		w.dropped = w.own.Owned().Difference(w.owned.Owned())
	}
}

// leavesEntries reports whether all entries would be written as they are, the manager's included.
func (w *applyWrite) leavesEntries() bool {
	return w.isCurrent && w.own.IsUnchanged() && !w.own.IsEmpty()
}

// mayKeepLastApplied reports whether [applyWrite.keepLastApplied] may change kubectl's annotation.
func (w *applyWrite) mayKeepLastApplied() bool {
	return w.key.Manager == kubectl && lastApplied(w.live.tree) != ""
}

// setOwners takes from others what the write changes, and makes the list of entries. Without force, what others own is
// in conflict; but the manager called kubectl may take fields that are as client-side apply left them (spec rule 9.1).
// Entries are sorted when they are encoded, so their order does not matter here.
func (w *applyWrite) setOwners() error {
	others := w.others
	if w.changed {
		w.lost = losses{refuse: !w.force && w.key.Manager != kubectl}
		changes := &comparisons{m: w.m, ctx: w.ctx, read: func() (old, now object, err error) {
			return w.live.stripped(), w.merged.stripped(), nil
		}}
		others = w.m.takeFromOthers(others, w.key, changes, &w.lost)
		w.lost.conflicts.Sort()
		if w.key.Manager == kubectl && len(w.lost.conflicts) > 0 && !w.lost.more {
			left := w.m.clientSideApplied(w.live.stripped())
			isLeft := func(c conflicts.Conflict) bool { return left.Has(c.Path) }
			if w.lost.conflicts = slices.DeleteFunc(w.lost.conflicts, isLeft); len(w.lost.conflicts) == 0 {
				w.lost.conflicts = nil
			}
		}
		if len(w.lost.conflicts) > 0 && !w.force {
			return w.lost.conflicts
		}
	} else {
		others = slices.DeleteFunc(others, func(r managedfields.Entry) bool { return r.IsEmpty() })
	}
	mine := w.ownEntry()
	if w.own = &mine; !mine.IsEmpty() {
		others = append(others, mine)
	}
	w.entries = append(others, w.kept...)
	return nil
}

// ownEntry returns the manager's entry after the write. Its time is set only if the object changed (spec rule 2.3).
func (w *applyWrite) ownEntry() managedfields.Entry {
	mine := w.owned
	if w.own != nil {
		mine.Time = w.own.Time
		if w.isOwned {
			mine = *w.own
		}
	}
	if w.changed {
		mine.SetTime(w.m.timestamp())
	}
	return mine
}

// result makes the object, and says what the apply did.
func (w *applyWrite) result() (Result, error) {
	out, err := w.object()
	if err != nil {
		return Result{}, err
	}
	r := Result{Object: out, ObjectChanged: w.changed, Conflicts: w.lost.conflicts, own: w.own, isNoOp: w.isNoOp}
	if !w.changed && !w.annotated {
		r.live = w.given
	}
	return r, nil
}

// object returns the object to store.
func (w *applyWrite) object() (runtime.Object, error) {
	out, tree := cmp.Or(w.given, w.applied), w.merged.tree
	isStruct := w.m.isOwnStruct(w.given)
	switch {
	case w.isNoOp && isStruct:
		return gostruct.Copy(out), nil
	case w.isNoOp:
		return gostruct.ObjectLike(out, tree)
	}
	var err error
	if w.key.Manager == kubectl {
		if tree, err = w.keepLastApplied(tree); err != nil {
			return nil, fmt.Errorf("%s: %w", w.intent.name(), err)
		}
		w.annotated = !trees.SameMap(tree, w.merged.tree)
	}
	isDefaulted := w.changed && w.m.options.Defaulter != nil
	if _, ok := out.(runtime.Unstructured); ok && isDefaulted {
		tree = trees.Copy(managedfields.With(tree, nil)).(map[string]any)
	}
	if !isStruct || w.changed || !trees.SameMap(tree, w.live.tree) {
		if out, err = gostruct.ObjectLike(out, tree); err != nil {
			return nil, fmt.Errorf("%s: %w", w.intent.name(), err)
		}
	}
	if isDefaulted {
		w.m.options.Defaulter(out)
		// A defaulter may do anything to the object. Its managed fields are overwritten below.
		if err := checkHolder(out); err != nil {
			return nil, fmt.Errorf("defaulting %s: %w", w.intent.name(), err)
		}
	}
	return w.entries.Into(out)
}
