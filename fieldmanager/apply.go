package fieldmanager

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
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
// memory with both. When it equals live, nothing was changed and nothing needs
// to be written.
//
// The error is a [conflicts.Conflicts] when other managers own fields that the
// intent would change, and force is false; an apierrors BadRequest when the
// intent is of another kind or has managed fields; and otherwise an [ObjectError],
// which says which object is at fault: with a typed.Errors in it when the object
// does not fit its type. live is never changed.
func (m *FieldManager) Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	if out, err, ok := m.overlaid(live, applied, manager, force); ok {
		return out, err
	}
	w, err := m.startApply(live, applied, manager, force)
	if err != nil {
		return nil, err
	}
	if err := w.run(); err != nil {
		return nil, err
	}
	return w.finish(live, applied)
}

// applyWrite is one apply on its way through the pipeline.
type applyWrite struct {
	m       *FieldManager
	key     managedfields.Key
	force   bool
	live    object
	intent  object
	entries records // of live, and in the end those that are stored

	merged   object
	changed  bool // merged differs from live
	unlisted bool // there are conflicts that the error does not list
}

// startApply checks the request and takes it apart (spec rules 1.1 to 1.3).
func (m *FieldManager) startApply(live, applied runtime.Object, manager string, force bool) (*applyWrite, error) {
	if applied == nil {
		return nil, apierrors.NewBadRequest("no object to apply")
	}
	key := m.key(manager, managedfields.Apply)
	var tree map[string]any
	var liveErr error
	if live != nil {
		if tree, liveErr = treeOf(live); liveErr == nil {
			liveErr = checkMetadata(tree)
		}
	}
	intent, err := m.intentOf(applied, tree, key)
	if err != nil {
		return nil, err
	}
	w := &applyWrite{m: m, key: key, force: force, intent: intent}
	if live == nil {
		w.live, err = m.emptyObject()
		return w, err
	}
	if liveErr != nil {
		return nil, &ObjectError{LiveObject, "", liveErr}
	}
	if w.entries, err = readRecords(tree); err != nil {
		return nil, &ObjectError{LiveObject, "", err}
	}
	if w.live, err = m.objectOf(live); err != nil {
		return nil, &ObjectError{LiveObject, "", err}
	}
	w.live = w.live.stripped()
	if err := w.live.withinLimits(); err != nil {
		return nil, &ObjectError{LiveObject, "", err}
	}
	if len(w.entries) == 0 {
		return w, w.trackFromHere()
	}
	return w, nil
}

// key returns the key of what manager does through this FieldManager.
func (m *FieldManager) key(manager string, op managedfields.Operation) managedfields.Key {
	if manager == "" {
		manager = unknownManager
	}
	return managedfields.KeyOf(manager, op, m.version, m.subresource)
}

// intentOf returns an intent, validated; live is what it is applied to, nil for
// nothing.
func (m *FieldManager) intentOf(applied runtime.Object, live map[string]any, manager managedfields.Key) (object, error) {
	tree, err := treeOf(applied)
	if err != nil {
		return object{}, &ObjectError{AppliedObject, "", err}
	}
	if gvk := applied.GetObjectKind().GroupVersionKind(); gvk != m.kind {
		return object{}, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", gvk))
	}
	if v, ok := managedfields.Of(tree); ok && v != nil {
		return object{}, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if err := checkMetadata(tree); err != nil {
		return object{}, &ObjectError{AppliedObject, "", err}
	}
	o := object{tree, m.version, m.typ}
	if err := m.typ.Validate(tree, m.intentRules(live)); err != nil {
		return object{}, &ObjectError{AppliedObject, o.name(), err}
	}
	if m.unknown != RefuseUnknown {
		o.tree = m.withoutUnknown(o.tree, live, manager)
	}
	return o, nil
}

// intentRules are those of an intent that is applied to live, nil for nothing.
func (m *FieldManager) intentRules(live map[string]any) typed.Rules {
	rules := typed.Rules{Unknown: m.unknown != RefuseUnknown}
	if live != nil {
		rules.Standing = live
	}
	return rules
}

// withoutUnknown returns an intent without the fields that its type does not
// declare.
func (m *FieldManager) withoutUnknown(tree, live map[string]any, manager managedfields.Key) map[string]any {
	known, dropped := m.typ.DropUnknown(tree, m.intentRules(live).Standing)
	if m.unknown == WarnUnknown && m.warn != nil {
		for _, e := range dropped {
			m.warn(Warning{Manager: manager, Version: m.version, Err: e})
		}
	}
	tree, _ = known.(map[string]any)
	return tree
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
	empty, err := w.m.emptyObject()
	if err != nil {
		return fmt.Errorf("empty object: %w", err)
	}
	w.entries = w.m.track(nil, w.m.compare(empty, w.live), BeforeFirstApply)
	return nil
}

// run merges, and excuses the manager called kubectl conflicts over fields that
// are as client-side apply left them (spec rule 9.1).
func (w *applyWrite) run() error {
	err := w.merge(w.force)
	var conflicting conflicts.Conflicts
	if w.key.Manager == kubectl && !w.unlisted && errors.As(err, &conflicting) {
		excused := w.m.clientSideApplied(w.live)
		if excused.Empty() {
			return err
		}
		if rest := without(conflicting, excused); len(rest) > 0 {
			return rest
		}
		return w.merge(true)
	}
	return err
}

// merge is the heart of an apply: merged object, entries, conflicts. It dates
// the entry only if the object changed (spec rule 2.3), and leaves w as it was
// when there is a conflict.
func (w *applyWrite) merge(force bool) error {
	m := w.m
	known, kept := m.reconcile(w.entries)
	merged, err := w.laidOver(w.live, w.intent.tree)
	if err != nil {
		return err
	}

	last, applied := w.takeLast(&known, &kept)
	mine := record{decoded: true, Entry: managedfields.Entry{
		Key: w.key, Version: m.version, Time: last.Time,
		Fields: m.filter(m.version, m.typ.FieldSet(w.intent.tree)),
	}}
	known = append(known, mine)
	if applied {
		pruned := m.prune(merged, known, mine.Entry, last)
		if !sameTree(pruned.tree, merged.tree) {
			// What the intent owns is as the intent has it, whatever removal made of it, and
			// conversions on the way: the same intent again finds nothing to do (spec rule 6.4).
			owned := managedfields.Strip(mine.Fields)
			if merged, err = w.laidOver(pruned, m.typ.Extract(w.intent.tree, owned.Leaves(), true)); err != nil {
				return err
			}
		}
	}

	lost := losses{refuse: !force}
	known = m.settle(known, w.key, m.compare(w.live, merged), &lost)
	if len(lost.conflicts) > 0 && !force {
		w.unlisted = lost.more
		return lost.conflicts
	}
	w.merged, w.changed = merged, !typed.Equal(w.live.tree, merged.tree)
	if i := known.index(w.key); i >= 0 {
		mine := &known[i]
		if mine.set(managedfields.Strip(mine.Fields)); mine.Fields.Empty() {
			known = slices.Delete(known, i, i+1)
		} else if w.changed {
			mine.Time = m.timestamp()
		}
	}
	w.entries = append(known, kept...)
	return nil
}

// laidOver returns o with an intent laid over it.
func (w *applyWrite) laidOver(o object, intent any) (object, error) {
	if intent == nil {
		return o, nil
	}
	tree, err := w.m.semantics.Merge(o.typ, o.tree, intent)
	if err != nil {
		return object{}, fmt.Errorf("merging %s: %w", w.intent.name(), err)
	}
	o.tree, _ = tree.(map[string]any)
	return o, nil
}

// takeLast takes the manager's last entry out of the records, and returns it;
// applied is false when there is none that removals could follow.
func (w *applyWrite) takeLast(known, kept *records) (last managedfields.Entry, applied bool) {
	if i := kept.index(w.key); i >= 0 {
		last = managedfields.Entry{Time: (*kept)[i].Time}
		*kept = slices.Delete(*kept, i, i+1)
	}
	i := known.index(w.key)
	if i < 0 {
		return last, false
	}
	r := (*known)[i]
	*known = slices.Delete(*known, i, i+1)
	if err := r.decode(); err != nil {
		w.m.warning(r.Entry, err)
		return managedfields.Entry{Time: r.Time}, false
	}
	return r.Entry, true
}

// finish makes the object that is returned.
func (w *applyWrite) finish(live, applied runtime.Object) (runtime.Object, error) {
	shape := live
	if shape == nil {
		shape = applied
	}
	tree := w.live.tree
	if w.changed {
		tree = w.merged.tree
	}
	if w.key.Manager == kubectl {
		var err error
		if tree, err = keepLastApplied(tree, w.intent.tree); err != nil {
			return nil, fmt.Errorf("%s: %w", w.intent.name(), err)
		}
	}
	if w.changed && w.m.defaulter != nil {
		out, err := like(shape, trees.Copy(managedfields.With(tree, nil)).(map[string]any))
		if err != nil {
			return nil, err
		}
		w.m.defaulter(out)
		// What it did to the managed fields does not count.
		if tree, err = treeOf(out); err == nil {
			err = checkMetadata(tree)
		}
		if err != nil {
			return nil, fmt.Errorf("defaulting %s: %w", w.intent.name(), err)
		}
	}
	return like(shape, managedfields.With(tree, w.entries.encode()))
}
