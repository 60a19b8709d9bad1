// Package plans computes what an apply would do, and the ways out of its conflicts.
//
//	plan, err := plans.New(ctx, m, live, intent, plans.Options{Manager: "alice", Defaults: true})
//	fmt.Println(plan.Outcome) // such as "changed"
package plans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Outcome says what an apply would do.
type Outcome uint8

// The outcomes, from the one with the least to the one with the greatest effect.
const (
	// Unchanged: the object and the owners of its fields stay as they are (spec rule 13.1). The resourceVersion need
	// not: a server may store the same object once more.
	Unchanged Outcome = iota
	// OwnershipOnly: only managed fields change.
	OwnershipOnly
	// Changed: the object changes, or is created.
	Changed
	// Conflict: others own what would change. A server responds with 409 and writes nothing.
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

// Options are the options of the planned apply, and what the server does that would get it.
type Options struct {
	// Manager is who would apply.
	Manager string
	// Force plans an apply that takes fields in conflict from their owners.
	Force bool
	// Defaults sets the defaults of the schema in live and the merged object, as a server does after it merged
	// ([typed.Type.Default]). The Defaulter of the FieldManager is called with both in any case; it is for defaults
	// that a server has in code.
	Defaults bool
	// Defaulter is called with both objects, and does what a server in another process does in code when it decodes
	// them; nil for nothing. Unlike the FieldManager's, it does not change the Object of the plan.
	Defaulter func(runtime.Object)
	// Prepare is called with the merged object, and does what a server does in code before it stores an update, besides
	// resetting the ResetFields of the FieldManager: it puts back what such a write must not change, such as a
	// Namespace's finalizers, and sets what follows from other fields. Both objects have their defaults; live must not
	// be changed. Nil does nothing. Prepare is not called for a subresource.
	Prepare func(merged, live runtime.Object)
	// Validate returns why a server refuses to store the merged object, after Prepare; New returns that error. live is
	// nil for a create, and neither may be changed. Validate is not called for a conflict, which a server finds first.
	// Nil refuses nothing.
	Validate func(merged, live runtime.Object) error
	// Found, if it is not nil, are the conflicts that a server found for the same apply, none if it is empty: they
	// take the place of the plan's. A server can compare entries of versions for which the FieldManager has no
	// Converter.
	Found conflicts.Conflicts
	// Semantics say which values are equal when live and the merged object are compared; nil for the FieldManager's
	// own. Conflicts do not depend on it, because a server finds them before it decodes values. Servers compare custom
	// resources as nil does, and built-in types, which are Go structs, as [typed.Canonical] does.
	Semantics *typed.Semantics
}

// ErrPrecondition says that an intent has a resourceVersion other than live's, or a uid although there is no object. A
// server responds with 409. A retry with the current object may succeed.
var ErrPrecondition = errors.New("precondition failed")

var errNoFieldManager = errors.New("expected a FieldManager, got nil")

// Plan is what an apply would do. Nothing in it may be changed: it shares memory with the objects that it was made of.
type Plan struct {
	// Outcome is what a server would do.
	Outcome Outcome
	// Object is the object that [fieldmanager.FieldManager.Apply] returns, for a conflict with force. A server may store
	// another one, since it puts back what the write must not change, such as the status, and sets defaults.
	Object runtime.Object
	// Conflicts are what the apply has without force, whether or not it is planned with force.
	Conflicts conflicts.Conflicts
	// Ownership has the managers who gain or lose fields, in the order of managedfields.Key.
	Ownership []OwnershipChange

	typ           *typed.Type
	semantics     *typed.Semantics
	before, after map[string]any // live, nil for a create, and what a server would store
}

// String returns what a log wants of a plan: the outcome, the paths that change, and the owners of what is in
// conflict. It has no values of objects.
func (p *Plan) String() string {
	var changes, found []string
	for change := range p.Changes() {
		if len(changes) == maxNamed {
			changes = append(changes, "…")
			break
		}
		changes = append(changes, change.String())
	}
	for _, c := range p.Conflicts[:min(len(p.Conflicts), maxNamed)] {
		found = append(found, c.String())
	}
	text := p.Outcome.String()
	if len(changes) > 0 {
		text += ": " + strings.Join(changes, ", ")
	}
	if len(found) > 0 {
		text += "; in conflict: " + strings.Join(found, ", ")
	}
	return text
}

// maxNamed is how many changes and conflicts the text of a plan names.
const maxNamed = 10

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
	Kind ChangeKind `json:"kind"`
	// Path is the path of the field. A container that is added or removed with everything in it is one change.
	Path fieldpath.Path `json:"field"`
	// Before and After are the values of the field; nil if there is none, and for a null.
	Before any `json:"before"`
	After  any `json:"after"`
}

// String says which field changes, and how. It has no values.
func (c Change) String() string { return string(c.Kind) + " " + c.Path.Short() }

// New returns the plan of an apply with the same arguments. Conflicts are no error; any other error is Apply's,
// or [ErrPrecondition].
//
// Outcome is the outcome on a server that merges as the engine does, restores the fields that the write resets (the
// ResetFields of m) and the fields of metadata that only a server sets, sets defaults, and writes nothing if the result
// equals the stored object, the times of entries aside. So a plan is right if live is recent, and if the options match
// the server: reset fields, defaults and semantics. A plan does not know validation and admission.
func New(ctx context.Context, m *fieldmanager.FieldManager, live, applied runtime.Object, options Options) (
	*Plan, error) {
	if m == nil {
		return nil, errNoFieldManager
	}
	result, err := m.Apply(ctx, live, applied, fieldmanager.ApplyOptions{Manager: options.Manager, Force: true})
	if err != nil {
		return nil, err
	}
	if err := checkPreconditions(live, applied); err != nil {
		return nil, err
	}
	if options.Found != nil {
		result.Conflicts = slices.Clone(options.Found)
	}
	p := &Plan{Object: result.Object, Conflicts: result.Conflicts}
	if result.IsNoOp() {
		return p, nil
	}
	w := write{ctx, m, m.Options(), m.Kind().GroupVersion().String(), live}
	p.semantics = cmp.Or(options.Semantics, w.options.Semantics)
	if err := p.compare(w, options); err != nil {
		return nil, err
	}
	switch {
	case len(p.Conflicts) > 0 && !options.Force:
		p.Outcome = Conflict
		p.markEqual(w.version)
	case p.before == nil || !p.semantics.Equal(p.typ, p.before, p.after):
		p.Outcome = Changed
	case !managedfields.Equal(live, p.Object, true):
		p.Outcome = OwnershipOnly
	}
	if options.Validate != nil && p.Outcome != Conflict {
		if err := p.validate(options.Validate); err != nil {
			return nil, err
		}
	}
	p.Ownership = w.ownershipChanges(p.Object)
	return p, nil
}

// markEqual marks the conflicts at a version over values that are equal for a server. What the intent sets and no
// object ever has, such as stringData of a Secret, is not known to be equal: a server may put it elsewhere.
func (p *Plan) markEqual(version string) {
	changed := p.semantics.Compare(p.typ, p.before, p.after)
	all := changed.Added.Union(changed.Modified).Union(changed.Removed)
	for i := range p.Conflicts {
		c := &p.Conflicts[i]
		isElsewhere := c.Live == nil && !isZero(c.Applied)
		c.Equal = c.APIVersion == version && !touches(all, c.Path) && !isElsewhere
	}
}

// isZero reports whether a value may be absent for a server, as the zero value of a Go type.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// touches reports whether a set has a path, one above it, or one below it.
func touches(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, e := range path {
		member, below := set.At(e)
		if member {
			return true
		}
		set = below
	}
	return !set.IsEmpty()
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

// compare sets p.after to what a server would store, and p.before to live, with the defaults of a server in both.
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

// change calls f, if it is not nil, with a copy of an object, and sets tree to the tree of that.
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

// Changes yields the fields that change in the object, without managed fields, as [Changes] does. For a conflict they
// are what an apply with force would change. There are none if the outcome is Unchanged or OwnershipOnly, or Conflict
// over values that are equal for a server.
func (p *Plan) Changes() iter.Seq[Change] {
	return Changes(p.typ, p.semantics, p.before, p.after)
}

// Changes yields the fields that differ between two versions of an object of type t: first those that are added or
// modified, then those that are removed, then the lists that are reordered, each in the order of fieldpath.Set.All. If
// only items differ that do not fit their type, such as one without a key, their lists are modified. There are none if
// both are equal by the semantics; nil means the semantics of JSON.
func Changes(t *typed.Type, semantics *typed.Semantics, before, after map[string]any) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		if semantics.Equal(t, before, after) {
			return
		}
		c, typ := semantics.Compare(t, before, after), t
		reordered := t.Reordered(before, after)
		if c.AddedOrModified().IsEmpty() && c.Removed.IsEmpty() && reordered.IsEmpty() {
			typ = typed.Deduced()
			c = semantics.Compare(typ, before, after)
		}
		finder := values.NewFinder()
		for _, part := range [...]struct {
			kind ChangeKind
			set  *fieldpath.Set
		}{
			{Added, topmost(c.Added)}, {Modified, c.Modified}, {Removed, topmost(c.Removed)}, {Reordered, reordered},
		} {
			for path, values := range finder.Pairs(typ, part.set, before, after) {
				if !yield(Change{part.kind, slices.Clone(path), values[0], values[1]}) {
					return
				}
			}
		}
	}
}

// topmost returns the paths of set that are not below another path of it.
func topmost(set *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(set, func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		if e.Member {
			return fieldpath.Entry{Member: true}
		}
		return fieldpath.Entry{Below: topmost(e.Below)}
	})
}
