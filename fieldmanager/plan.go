package fieldmanager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Outcome says what an apply would do.
type Outcome uint8

// The outcomes, from the least to the most that has to be done about them.
const (
	// Unchanged: nothing. A server that is sent the intent writes nothing, and the
	// object keeps its resourceVersion (spec rule 13.1).
	Unchanged Outcome = iota
	// OwnershipOnly: the object stays as it is, but for its managed fields.
	OwnershipOnly
	// Changed: the object changes, or is created.
	Changed
	// Conflict: others own what would change. A server answers 409 and writes
	// nothing.
	Conflict
)

var outcomes = [...]string{"unchanged", "ownership only", "changed", "conflict"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// MarshalText returns what String does.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// PlanOptions are those of the apply that is planned, and what is known of the server that it would be sent to.
type PlanOptions struct {
	// Manager is who would apply.
	Manager string
	// Force plans an apply that takes fields in conflict from their owners.
	Force bool
	// Defaults fills the defaults of the schema in where live and the merged object
	// lack them, as a server does after it merged ([typed.Type.Default]). The Defaulter
	// of [Options] is called with both in any case: a host whose types have defaults in
	// code names them there.
	Defaults bool
	// Defaulter does to both what a server of another process does in code when it decodes them; nil for nothing. Unlike
	// that of [Options] it has no say in the merged object.
	Defaulter func(runtime.Object)
	// Prepare does to the merged object what a server does in code before it stores an update, besides resetting the
	// ResetFields of [Options]: it puts back what such a write must not change, such as a Namespace's finalizers, and
	// sets what follows from other fields. Both objects have their defaults; live must not be changed. Nil for nothing. It
	// is not called for a subresource.
	Prepare func(merged, live runtime.Object)
	// Validate returns why a server refuses to store the merged object, which is as Prepare left it; live is nil for a
	// create, and neither may be changed. The error is Plan's. It is not called for a conflict, which a server finds
	// first. Nil refuses nothing.
	Validate func(merged, live runtime.Object) error
	// Semantics say which values are equal when live and the merged object are
	// compared; nil for the FieldManager's own. It has no say in what is in conflict:
	// a server raises conflicts before it looks what the values mean. For custom
	// resources nil is what a server does; for built-in types, which it keeps as Go
	// structs, [typed.Canonical] is.
	Semantics *typed.Semantics
}

// ErrPrecondition says that an intent names a resourceVersion that is not live's, or a
// uid although there is no object. A server answers 409, and a retry with the object as
// it is now may go well.
var ErrPrecondition = errors.New("precondition failed")

// Plan is what an apply would do. Nothing in it may be changed: it shares memory
// with the objects that it was made of.
//
// Its Object is that of [FieldManager.Apply], for a conflict that of an apply with force. A server may come to store
// something else: it puts back what the write must not touch, such as the status, and fills defaults in. Changed and
// NoOp are about what it stores, as Outcome is. For the outcome Conflict, Conflicts are what stands in the way.
type Plan struct {
	Result
	// Outcome says it in a word.
	Outcome Outcome
	// Ownership says whose fields become others, in the order of managedfields.Key;
	// managers whose entries stay as they are, but for the time, are left out.
	Ownership []OwnershipChange

	semantics *typed.Semantics
	before    object // defaulted; no tree for a create
	after     object
}

// OwnershipChange is what becomes of what one manager owns. The paths are of the
// API version of its entry (spec rule 13.3). Invariants, where before and after are what it owns:
//
//	Gains   = after - before     Shares  ⊆ Gains
//	Loses   = before - after     Removes ⊆ Loses
type OwnershipChange struct {
	// Manager is whose entry it is.
	Manager managedfields.Key
	// Version is the API version of its entry afterwards, or before when there is
	// none any more.
	Version string
	// Gains are the fields that it comes to own, and Shares those of them that
	// others own as well.
	Gains, Shares *fieldpath.Set
	// Loses are the fields that it owns no longer, and Removes those of them that
	// go from the object: it gave them up, or they were inside something that
	// somebody gave up, and nobody else owns them.
	Loses, Removes *fieldpath.Set
}

// ChangeKind says how a field changes.
type ChangeKind string

// The kinds of changes.
const (
	// Added: only the object after has the field.
	Added ChangeKind = "added"
	// Modified: both have it, with other values.
	Modified ChangeKind = "modified"
	// Removed: only the object before has it.
	Removed ChangeKind = "removed"
	// Reordered: a list has its items in another order.
	Reordered ChangeKind = "reordered"
)

// Change is one field that changes.
type Change struct {
	Kind ChangeKind
	// Path is the field. Of what is added or removed as a whole, it is the whole.
	Path fieldpath.Path
	// Before and After are its values; nil where there is none, and for a null.
	Before, After any
}

// Plan returns what Apply would do with the same arguments, without an error for
// conflicts. Any other error is Apply's, or [ErrPrecondition].
//
// Outcome is about a server that does what the engine does and then, with the
// object that it merged: puts back the fields that the write resets
// (the ResetFields of [Options]) and those of metadata that are the server's; fills defaults
// in; and writes nothing when what it has equals what is stored, the times of
// entries aside. So the plan is as good as live is recent and as the options are
// those of the server: reset fields, defaults and semantics. Validation and
// admission are not known here.
func (m *FieldManager) Plan(ctx context.Context, live, applied runtime.Object, options PlanOptions) (*Plan, error) {
	if err := m.checkPreconditions(live, applied); err != nil {
		return nil, err
	}
	w, err := m.prepareApply(ctx, live, applied, ApplyOptions{Manager: options.Manager})
	if err != nil {
		return nil, err
	}
	if w.isNoOp {
		result, err := w.finish()
		return &Plan{Result: result}, err
	}
	p := &Plan{semantics: options.Semantics}
	if p.semantics == nil {
		p.semantics = m.options.Semantics
	}
	err = w.takeOwnership()
	var refused conflicts.Conflicts
	if errors.As(err, &refused) {
		err = w.takeFields(true)
	}
	if err != nil {
		return nil, err
	}
	if p.Result, err = w.finish(); err != nil {
		return nil, err
	}
	p.Conflicts = refused
	if err := p.compare(w, live, options); err != nil {
		return nil, err
	}
	same := p.before.tree != nil && p.semantics.Equal(m.typ, p.before.tree, p.after.tree)
	p.Changed = !same
	p.NoOp = same && sameEntries(live, p.Object, sameButTime)
	switch {
	case len(p.Conflicts) > 0 && !options.Force:
		p.Outcome = Conflict
	case p.Changed:
		p.Outcome = Changed
	case !p.NoOp:
		p.Outcome = OwnershipOnly
	}
	if options.Validate != nil && p.Outcome != Conflict {
		if err := p.validate(options.Validate); err != nil {
			return nil, err
		}
	}
	p.Ownership, err = w.ownershipChanges(live)
	return p, err
}

func (p *Plan) validate(validate func(merged, live runtime.Object) error) error {
	merged, err := objectLike(p.Object, p.after.tree)
	if err != nil {
		return err
	}
	var before runtime.Object
	if p.before.tree != nil {
		if before, err = objectLike(p.Object, p.before.tree); err != nil {
			return err
		}
	}
	return validate(merged, before)
}

// checkPreconditions refuses an intent that is for another object than live. An
// object that is not readable is left to Apply to complain about.
func (m *FieldManager) checkPreconditions(live, applied runtime.Object) error {
	intent, err := treeOf(applied)
	if err != nil {
		return nil
	}
	var stored map[string]any
	if !isNil(live) {
		if stored, err = treeOf(live); err != nil {
			return nil
		}
	}
	want, _ := intent["metadata"].(map[string]any)
	have, _ := stored["metadata"].(map[string]any)
	for _, name := range [...]string{"resourceVersion", "uid"} {
		v, _ := want[name].(string)
		now, _ := have[name].(string)
		switch {
		case v == "" || v == now:
		case name == "uid" && now != "":
			return fmt.Errorf("metadata.uid: expected %q, which is immutable, got %q", now, v)
		default:
			return fmt.Errorf("metadata.%s: %w: expected %q, the object has %q", name, ErrPrecondition, v, now)
		}
	}
	return nil
}

// compare sets what is compared: live, and what a server would store.
func (p *Plan) compare(w *applyWrite, live runtime.Object, options PlanOptions) error {
	merged, err := treeOf(p.Object)
	if err != nil {
		return fmt.Errorf("merged object: %w", err)
	}
	if p.before, err = w.liveObject(); err != nil {
		return err
	}
	p.after = object{managedfields.With(merged, nil), w.m.version, w.m.typ}
	if isNil(live) {
		p.before.tree = nil
	}
	if p.after.tree, err = w.m.putBack(p.before.tree, p.after); err != nil {
		return err
	}
	if p.before.tree != nil && typed.Equal(p.before.tree, p.after.tree) {
		return nil // Equal objects have equal defaults, and most plans end here.
	}
	for _, o := range []*object{&p.before, &p.after} {
		if o.tree == nil {
			continue
		}
		if options.Defaults {
			o.tree, _ = o.typ.Default(o.tree).(map[string]any)
		}
		for _, set := range []func(runtime.Object){w.m.options.Defaulter, options.Defaulter} {
			if err := p.change(o, set); err != nil {
				return fmt.Errorf("defaulting: %w", err)
			}
		}
	}
	if options.Prepare == nil || p.before.tree == nil || w.m.options.Subresource != "" {
		return nil
	}
	before, err := objectLike(p.Object, trees.Copy(p.before.tree).(map[string]any))
	if err != nil {
		return err
	}
	return p.change(&p.after, func(merged runtime.Object) { options.Prepare(merged, before) })
}

// change calls a function, if it is not nil, with a copy of an object, and sets the object's tree to what comes of it.
func (p *Plan) change(o *object, f func(runtime.Object)) error {
	if f == nil {
		return nil
	}
	obj, err := objectLike(p.Object, trees.Copy(o.tree).(map[string]any))
	if err != nil {
		return err
	}
	f(obj)
	if o.tree, err = treeOf(obj); err != nil {
		return err
	}
	o.tree = managedfields.With(o.tree, nil)
	return nil
}

// sameEntries reports whether two objects have the same managed fields, in the same order.
func sameEntries(a, b runtime.Object, same func(x, y any) bool) bool {
	before, err1 := entryList(a)
	after, err2 := entryList(b)
	return err1 == nil && err2 == nil && (before == nil) == (after == nil) && slices.EqualFunc(before, after, same)
}

// sameButTime reports whether two entries are the same but for their times: a server does not write those alone.
func sameButTime(a, b any) bool {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	return ok1 && ok2 && typed.Equal(timeless(x), timeless(y))
}

// entryList returns the managed fields of an object as they are in an unstructured one.
func entryList(obj runtime.Object) ([]any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && !isUnstructured(obj) {
		obj = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: accessor.GetManagedFields()}}
	}
	tree, err := treeOf(obj)
	v, _ := managedfields.Of(tree)
	list, _ := v.([]any)
	return list, err
}

func timeless(entry map[string]any) map[string]any {
	if _, ok := entry["time"]; ok {
		entry = maps.Clone(entry)
		delete(entry, "time")
	}
	return entry
}

// Changes yields the fields that change in the object, its managed fields aside:
// those that are added or modified, those that are removed, and the lists that are
// reordered, each in the order of fieldpath.Set.All. For a conflict it is what force
// would change. There are none exactly when the outcome is Unchanged or
// OwnershipOnly, or a conflict over values that a server takes as equal.
func (p *Plan) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		t := p.after.typ
		if t == nil {
			return
		}
		c := p.semantics.Compare(t, p.before.tree, p.after.tree)
		var finder typed.Finder
		for _, part := range [...]struct {
			kind ChangeKind
			set  *fieldpath.Set
		}{
			{Added, topmost(c.Added)}, {Modified, c.Modified}, {Removed, topmost(c.Removed)},
			{Reordered, t.Reordered(p.before.tree, p.after.tree)},
		} {
			for path, values := range finder.Pairs(t, part.set, p.before.tree, p.after.tree) {
				if !yield(Change{part.kind, slices.Clone(path), values[0], values[1]}) {
					return
				}
			}
		}
	}
}

// topmost returns the paths of set that go on from no other path of it.
func topmost(set *fieldpath.Set) *fieldpath.Set {
	return set.Rewrite(func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		if e.Member {
			return fieldpath.Entry{Member: true}
		}
		return fieldpath.Entry{Below: topmost(e.Below)}
	})
}
