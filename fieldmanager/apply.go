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

// BeforeFirstApply is the manager that owns the fields of an object that had no entries before its first apply.
const BeforeFirstApply = "before-first-apply"

// unknownManager is the manager of a write without a manager name.
const unknownManager = "unknown"

// ApplyOptions are the options of one apply.
type ApplyOptions struct {
	// Manager is the name of the applying manager. An empty name means "unknown".
	Manager string
	// Force takes the fields in conflict from their owners.
	Force bool
}

// Result is what a write returns.
type Result struct {
	// Object is the object to store, with its managed fields.
	Object runtime.Object
	// ObjectChanged reports whether the write changed the object. Changes of managed fields, and of the annotation of
	// client-side apply, do not count.
	ObjectChanged bool
	// Conflicts are the fields that a forced apply took from other managers. Without force, the apply would have failed
	// because of them. An update has no conflicts.
	Conflicts conflicts.Conflicts

	own *managedfields.Entry // the manager's entry; nil if there is none

	isNoOp bool           // known to be a no-op, without a comparison
	live   runtime.Object // set if Object equals it, apart from managed fields
}

// String returns a text for logs: whether there is something to store, and which fields a forced apply took from other
// managers. It contains no values of objects.
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

// IsNoOp reports whether there is nothing to store: the live object exists, and the returned Object equals it,
// including managed fields. If the write did not have to compare managed fields, IsNoOp compares them.
func (r Result) IsNoOp() bool {
	return r.isNoOp || r.live != nil && managedfields.Equal(r.live, r.Object, false)
}

// Owned returns the field set of the manager's entry after the write, at the version of the FieldManager. If the write
// did not have to decode the entry, Owned decodes it. The entry shares memory with Object, so do not change Object
// before the call.
func (r Result) Owned() *fieldpath.Set {
	if r.own == nil {
		return nil
	}
	own := *r.own // a copy, because decoding changes an entry, and several goroutines may read a result
	return own.Owned()
}

// Apply merges applied, the intent of a manager, into live, and computes the resulting managed fields. live is the
// stored object; nil if none exists. applied must have the FieldManager's kind and version, and no managed fields.
//
// The object of the result has live's Go type (applied's if live is nil). It shares memory only with live and applied.
//
// If Force is false and other managers own fields that the intent would change, the error is a [conflicts.Conflicts].
// If the intent has another kind or version than the FieldManager or has managed fields, or if the manager's name is
// not valid (see managedfields.ValidateManager), the error is an apierrors BadRequest. Any other error is an
// [ObjectError]. It says which object is at fault, and contains a typed.Errors if the object does not fit its type.
// live is never changed. ctx is passed to the Converter.
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

// applyWrite is the state of one apply in the pipeline.
//
//	read         check the request; read both objects and live's entries, or make an entry of before-first-apply
//	merge        validate and merge the intent; compute which fields the manager owns and which it dropped
//	prune        remove the dropped fields that no other manager owns
//	setOwners    take changed fields from other managers, or report conflicts; make the manager's entry, set its time
//	result       update the last-applied annotation; default and encode the object
type applyWrite struct {
	m       *FieldManager
	ctx     context.Context
	key     managedfields.Key
	force   bool
	given   runtime.Object // live as passed by the caller; nil if there is none
	applied runtime.Object
	intent  object // applied
	live    object // given, or the empty object

	entries   managedfields.Entries // live's entries; from setOwners on, the entries to store
	isCurrent bool                  // live's entries are already in the form in which they would be written
	own       *managedfields.Entry  // the manager's entry; nil if there is none
	others    managedfields.Entries // entries other than own that can be compared; they are reconciled
	kept      managedfields.Entries // entries other than own that can't be compared; they are stored unchanged

	owned     managedfields.Entry // the fields that the intent owns
	isOwned   bool                // own has the same field set as owned, at this version
	dropped   *fieldpath.Set      // the paths of own that the intent does not own
	merged    object              // the same tree as live's unless changed
	changed   bool                // merged differs from live
	annotated bool                // the annotations of the object to store differ from merged's
	isNoOp    bool                // nothing changes, including entries: live is returned unchanged
	lost      losses              // the fields that other managers lose, or the conflicts
}

// read checks the request and reads both objects and the entries (spec rules 1.1, 1.2 and 1.3).
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
		// If both are invalid, the error is about the intent.
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

// readLive reads the stored object and its entries.
func (w *applyWrite) readLive() (err error) {
	if err = checkHolder(w.given); err == nil {
		w.isCurrent, err = hooks.ReadEntries(w.given, &w.entries)
	}
	if err == nil {
		w.live, err = w.m.objectOf(w.ctx, w.given)
	}
	return err
}

// key returns the key of the entry of manager, for an operation through this FieldManager.
func (m *FieldManager) key(manager string, op metav1.ManagedFieldsOperationType) managedfields.Key {
	return managedfields.KeyOf(cmp.Or(manager, unknownManager), op, m.version, m.options.Subresource)
}

// readIntent reads an intent, and does not yet validate it.
func (m *FieldManager) readIntent(applied runtime.Object) (object, error) {
	tree, err := gostruct.Tree(applied)
	if err != nil {
		return object{}, &ObjectError{AppliedObject, "", err}
	}
	if !m.isOwnVersion(tree) {
		gvk := applied.GetObjectKind().GroupVersionKind()
		text := fmt.Sprintf("invalid object type: %v", gvk) // the same text as upstream
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

// isOwnVersion reports whether a tree has the FieldManager's kind and version.
func (m *FieldManager) isOwnVersion(tree map[string]any) bool {
	return tree["apiVersion"] == any(m.version) && tree["kind"] == any(m.kind.Kind)
}

// validate checks a stored object. It allows duplicates and unknown fields, because the server accepted them.
func (o object) validate() error {
	if err := o.typ.Validate(o.tree, typed.Rules{AllowDuplicates: true, AllowUnknown: true}); err != nil {
		return fmt.Errorf("%s: %w", o.name(), err)
	}
	return nil
}

// giveToBeforeFirstApply makes an entry of before-first-apply that owns the fields of live, because earlier writes were
// not tracked (spec rule 1.5).
func (w *applyWrite) giveToBeforeFirstApply() error {
	old := w.live.stripped()
	if w.m.empty != nil && typed.Equal(w.m.empty, old.tree) {
		return nil // the common case in servers
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

// merge merges the intent into live, and computes which fields the intent owns and the manager dropped.
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

// mergeIntent merges the intent into live. If the merge fails, mergeIntent removes undeclared fields from the intent
// and merges again, unless undeclared fields are refused. If the second merge succeeds, unknown has the violations that
// the first merge found, all in undeclared fields. Nearly always, the violation is that the field is undeclared.
// Another violation of such a field, such as a name that is too long, is reported instead if it is found first.
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

// compareOwn adapts the manager's entry to the current topology if the entry has the FieldManager's version. Then it
// computes whether the entry owns the same fields as the intent, and which fields the manager dropped.
func (w *applyWrite) compareOwn() {
	if w.own == nil || w.own.APIVersion != w.m.version {
		return
	}
	if err := w.own.Reconcile(w.m.typ); err != nil {
		// An entry that can't be decoded owns nothing from now on, so that no field is removed because of it.
		w.m.warning(w.own, err)
		w.own.SetFieldSet(nil)
	}
	if w.isOwned = w.own.OwnsSame(&w.owned); !w.isOwned {
		w.dropped = w.own.Owned().Difference(w.owned.Owned())
	}
}

// leavesEntries reports whether all entries, including the manager's, would be written unchanged.
func (w *applyWrite) leavesEntries() bool {
	return w.isCurrent && w.own.IsUnchanged() && !w.own.IsEmpty()
}

// mayKeepLastApplied reports whether [applyWrite.keepLastApplied] may change kubectl's annotation.
func (w *applyWrite) mayKeepLastApplied() bool {
	return w.key.Manager == kubectl && lastApplied(w.live.tree) != ""
}

// setOwners takes changed fields from other managers, and makes the list of entries to store. Without force, changed
// fields that others own are conflicts, except that the manager kubectl may take fields that still have the values set
// by client-side apply (spec rule 9.1). Entries are sorted when they are encoded, so their order does not matter here.
func (w *applyWrite) setOwners() error {
	others := w.others
	if w.changed {
		w.lost = losses{refuse: !w.force && w.key.Manager != kubectl}
		changes := &comparisons{m: w.m, ctx: w.ctx, read: func() (old, updated object, err error) {
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

// result returns the object to store and what the apply changed.
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
		// A defaulter may change anything in the object. Managed fields are overwritten below.
		if err := checkHolder(out); err != nil {
			return nil, fmt.Errorf("defaulting %s: %w", w.intent.name(), err)
		}
	}
	return w.entries.Into(out)
}
