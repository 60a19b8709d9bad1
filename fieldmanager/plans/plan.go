// Package plans tells what an apply would do, and the ways out of its conflicts.
//
//	plan, err := plans.New(ctx, m, live, intent, plans.Options{Manager: "alice", Defaults: true})
//	fmt.Println(plan.Outcome) // such as "changed"
package plans

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/gostruct"
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

// Options are those of the apply that is planned, and what is known of the server that it would be sent to.
type Options struct {
	// Manager is who would apply.
	Manager string
	// Force plans an apply that takes fields in conflict from their owners.
	Force bool
	// Defaults fills the defaults of the schema in where live and the merged object
	// lack them, as a server does after it merged ([typed.Type.Default]). The Defaulter
	// of the FieldManager is called with both in any case: a host whose types have defaults in
	// code names them there.
	Defaults bool
	// Defaulter does to both what a server of another process does in code when it decodes them; nil for nothing. Unlike
	// that of the FieldManager it has no say in the merged object.
	Defaulter func(runtime.Object)
	// Prepare does to the merged object what a server does in code before it stores an update, besides resetting the
	// ResetFields of the FieldManager: it puts back what such a write must not change, such as a Namespace's finalizers,
	// and sets what follows from other fields. Both objects have their defaults; live must not be changed. Nil for
	// nothing. It is not called for a subresource.
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
// Its Object is that of [fieldmanager.FieldManager.Apply], for a conflict that of an apply with force. A server may
// come to store something else: it puts back what the write must not touch, such as the status, and fills defaults in.
// Changed and NoOp are about what it stores, as Outcome is. For the outcome Conflict, Conflicts are those that the
// apply returns without force.
type Plan struct {
	fieldmanager.Result
	// Outcome is what a server would do.
	Outcome Outcome
	// Ownership has the managers who gain or lose fields, in the order of managedfields.Key.
	Ownership []OwnershipChange

	typ           *typed.Type
	semantics     *typed.Semantics
	before, after map[string]any // live, nil for a create, and what a server would store
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
	// Path is the path of the field. A container that is added or removed with everything in it is one change.
	Path fieldpath.Path
	// Before and After are the values of the field; nil if there is none, and for a null.
	Before, After any
}

// New returns the plan of an apply with the same arguments, without an error for
// conflicts. Any other error is Apply's, or [ErrPrecondition].
//
// Outcome is that of a server that merges as the engine does, restores the fields that the write resets (the
// ResetFields of m) and the fields of metadata that only a server sets, sets defaults, and writes nothing if the result
// equals the stored object, the times of entries aside. So a plan is right if live is recent, and if the options are
// those of the server: reset fields, defaults and semantics. A plan does not know validation and admission.
func New(ctx context.Context, m *fieldmanager.FieldManager, live, applied runtime.Object, options Options) (
	*Plan, error) {
	result, err := m.Apply(ctx, live, applied, fieldmanager.ApplyOptions{Manager: options.Manager, Force: true})
	if err != nil {
		return nil, err
	}
	if err := checkPreconditions(live, applied); err != nil {
		return nil, err
	}
	p := &Plan{Result: result, semantics: options.Semantics}
	if p.NoOp {
		return p, nil
	}
	w := write{ctx, m, m.Options(), m.Kind().GroupVersion().String(), live}
	if p.semantics == nil {
		p.semantics = w.options.Semantics
	}
	if err := p.compare(w, options); err != nil {
		return nil, err
	}
	same := p.before != nil && p.semantics.Equal(p.typ, p.before, p.after)
	p.Changed = !same
	p.NoOp = same && managedfields.Equal(live, p.Object, true)
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
	p.Ownership, err = w.ownershipChanges(p.Object)
	return p, err
}

// write is the apply that is planned.
type write struct {
	ctx context.Context
	*fieldmanager.FieldManager
	options fieldmanager.Options
	version string         // of the FieldManager
	live    runtime.Object // nil for none
}

func (p *Plan) validate(validate func(merged, live runtime.Object) error) error {
	merged, err := gostruct.ObjectLike(p.Object, p.after)
	if err != nil {
		return err
	}
	var before runtime.Object
	if p.before != nil {
		if before, err = gostruct.ObjectLike(p.Object, p.before); err != nil {
			return err
		}
	}
	return validate(merged, before)
}

// checkPreconditions refuses an intent that is for another object than live.
func checkPreconditions(live, applied runtime.Object) error {
	want, err := meta.Accessor(applied)
	if err != nil {
		return err
	}
	var have metav1.Object = &metav1.ObjectMeta{}
	if live != nil {
		if have, err = meta.Accessor(live); err != nil {
			return err
		}
	}
	version, uid := have.GetResourceVersion(), have.GetUID()
	if v := want.GetResourceVersion(); v != "" && v != version {
		return fmt.Errorf("metadata.resourceVersion: %w: expected %q, the object has %q", ErrPrecondition, v, version)
	}
	switch v := want.GetUID(); {
	case v == "" || v == uid:
		return nil
	case uid != "":
		return fmt.Errorf("metadata.uid: expected %q, which is immutable, got %q", uid, v)
	default:
		return fmt.Errorf("metadata.uid: %w: expected %q, the object has %q", ErrPrecondition, v, uid)
	}
}

// compare sets what a server would store, and brings it and live to the form in which they are compared.
func (p *Plan) compare(w write, options Options) (err error) {
	if w.live != nil {
		if p.before, _, err = w.At(w.ctx, w.live, w.version); err != nil {
			return err
		}
	}
	if p.after, p.typ, err = w.At(w.ctx, p.Object, w.version); err != nil {
		return fmt.Errorf("merged object: %w", err)
	}
	if p.after, err = w.putBack(p.typ, p.before, p.after); err != nil {
		return err
	}
	if p.before != nil && typed.Equal(p.before, p.after) {
		return nil // Equal objects have equal defaults, and most plans end here.
	}
	for _, tree := range []*map[string]any{&p.before, &p.after} {
		if *tree == nil {
			continue
		}
		if options.Defaults {
			*tree, _ = p.typ.Default(*tree).(map[string]any)
		}
		for _, set := range []func(runtime.Object){w.options.Defaulter, options.Defaulter} {
			if err := p.change(tree, set); err != nil {
				return fmt.Errorf("defaulting: %w", err)
			}
		}
	}
	if options.Prepare == nil || p.before == nil || w.options.Subresource != "" {
		return nil
	}
	before, err := gostruct.ObjectLike(p.Object, trees.Copy(p.before).(map[string]any))
	if err != nil {
		return err
	}
	return p.change(&p.after, func(merged runtime.Object) { options.Prepare(merged, before) })
}

// change calls a function, if it is not nil, with a copy of an object, and sets its tree to what comes of it.
func (p *Plan) change(tree *map[string]any, f func(runtime.Object)) error {
	if f == nil {
		return nil
	}
	obj, err := gostruct.ObjectLike(p.Object, trees.Copy(*tree).(map[string]any))
	if err != nil {
		return err
	}
	f(obj)
	if *tree, err = gostruct.Tree(obj); err != nil {
		return err
	}
	*tree = managedfields.With(*tree, nil)
	return nil
}

// Changes yields the fields that change in the object, its managed fields aside:
// those that are added or modified, those that are removed, and the lists that are
// reordered, each in the order of fieldpath.Set.All. For a conflict it is what force
// would change. There are none exactly when the outcome is Unchanged or
// OwnershipOnly, or a conflict over values that a server takes as equal.
func (p *Plan) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		if p.typ == nil {
			return // nothing changes
		}
		c := p.semantics.Compare(p.typ, p.before, p.after)
		var finder typed.Finder
		for _, part := range [...]struct {
			kind ChangeKind
			set  *fieldpath.Set
		}{
			{Added, topmost(c.Added)}, {Modified, c.Modified}, {Removed, topmost(c.Removed)},
			{Reordered, p.typ.Reordered(p.before, p.after)},
		} {
			for path, values := range finder.Pairs(p.typ, part.set, p.before, p.after) {
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
