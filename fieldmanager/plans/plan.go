// Package plans computes the effect of an apply before it is sent, and the ways out of its conflicts.
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

// The outcomes, from the least to the most severe.
const (
	// Unchanged: the object and the owners of its fields do not change (spec rule 13.1). Only the resourceVersion may
	// change, if a server stores the same object again.
	Unchanged Outcome = iota
	// OwnershipOnly: only managed fields change.
	OwnershipOnly
	// Changed: the object changes, or is created.
	Changed
	// Conflict: other managers own fields that would change. A server responds with 409 and writes nothing.
	Conflict
)

var outcomes = [...]string{"unchanged", "ownership only", "changed", "conflict"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// MarshalText returns the text of String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Options are the options of the planned apply, and describe how the server processes it.
type Options struct {
	// Manager is the name of the manager that would apply.
	Manager string
	// Force plans an apply with force, which takes fields in conflict from their owners.
	Force bool
	// Defaults sets the defaults of the schema ([typed.Type.Default]) in live and in the merged object, as a server
	// does after merging. The Defaulter of the FieldManager, which is for defaults that a server sets in code, is
	// always called with both objects.
	Defaults bool
	// Defaulter is called with live and with the merged object. It sets the defaults that a server in another process
	// sets in code when it decodes objects; nil does nothing. Unlike the FieldManager's Defaulter, it does not change
	// the plan's Object.
	Defaulter func(runtime.Object)
	// Prepare is called with the merged object and live. In the merged object, it makes the changes that a server makes
	// in code before it stores an update, except that it need not restore the ResetFields of the FieldManager. It
	// restores other fields that the write must not change, such as the finalizers of a Namespace, and sets fields that
	// depend on other fields. Both objects have their defaults; live must not be changed. Nil does nothing. Prepare is
	// not called for a subresource.
	Prepare func(merged, live runtime.Object)
	// Validate is called with the merged object after Prepare, and returns the reason why a server rejects the object;
	// New returns this reason as its error. live is nil for a create; neither object may be changed. Validate is not
	// called if there is a conflict, because a server finds conflicts first. If Validate is nil, nothing is rejected.
	Validate func(merged, live runtime.Object) error
	// Found, if it is not nil, has the conflicts that a server found for the same apply. They replace the conflicts of
	// the plan, because the server can also compare entries of versions for which the FieldManager has no Converter. An
	// empty Found means that the server found no conflicts.
	Found conflicts.Conflicts
	// Semantics decide which values are equal in the comparison of live with the merged object; nil means the
	// FieldManager's own. They do not affect conflicts, because a server finds conflicts before it decodes values.
	// Servers compare custom resources in compatible (nil) semantics, and built-in kinds, which are Go structs, in
	// [typed.Canonical] semantics.
	Semantics *typed.Semantics
}

// ErrPrecondition means that an intent has a resourceVersion other than live's, or a uid although the object does not
// exist. A server responds with 409. A retry with the current object may succeed.
var ErrPrecondition = errors.New("precondition failed")

var errNoFieldManager = errors.New("expected a FieldManager, got nil")

// Plan is the effect of an apply. It shares memory with the objects that it was made from, so nothing in it may be
// changed.
type Plan struct {
	// Outcome is the outcome on a server.
	Outcome Outcome
	// Object is the object that [fieldmanager.FieldManager.Apply] returns; for a conflict, the object that it returns
	// with force. A server may store a different object, because it restores fields that the write must not change,
	// such as the status, and sets defaults.
	Object runtime.Object
	// Conflicts are the conflicts of the apply without force, even if force is planned.
	Conflicts conflicts.Conflicts
	// Ownership has the changes of managers that gain or lose fields, in the order of managedfields.Key.
	Ownership []OwnershipChange

	typ           *typed.Type
	semantics     *typed.Semantics
	before, after map[string]any // live (nil for a create), and the object that a server would store
}

// String returns a text for logs: the outcome, the paths that change, and the owners of the fields in conflict. It
// contains no values of objects.
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

// maxNamed is the maximum number of changes and conflicts in the text of a plan.
const maxNamed = 10

// ChangeKind says how a field changes.
type ChangeKind string

// The kinds of changes.
const (
	// Added: only the new object has the field.
	Added ChangeKind = "added"
	// Modified: both objects have the field, with different values. The value of an item that a list contains several
	// times is a list of these duplicates.
	Modified ChangeKind = "modified"
	// Removed: only the old object has the field.
	Removed ChangeKind = "removed"
	// Reordered: the items of a list are in a different order.
	Reordered ChangeKind = "reordered"
)

// Change is one field that changes.
type Change struct {
	Kind ChangeKind `json:"kind"`
	// Path is the path of the field. The addition or removal of a container with its whole content is one change.
	Path fieldpath.Path `json:"field"`
	// Before and After are the values of the field; nil if the field is missing or null.
	Before any `json:"before"`
	After  any `json:"after"`
}

// String says which field changes, and how. It contains no values.
func (c Change) String() string { return string(c.Kind) + " " + c.Path.Short() }

// New returns the plan of an apply with the same arguments. Conflicts are an outcome, not an error. The error is an
// [ErrPrecondition] or the error of Apply or Validate, or it says that the intent has another uid than live, or that
// the resulting object can't be computed.
//
// New assumes a server that merges as the engine does. The server then restores the fields that the write resets (the
// ResetFields of m) and the fields of metadata that only a server sets, and sets defaults. It writes nothing if the
// result equals the stored object apart from the times of entries. So a plan is correct if live is current, and if the
// reset fields, defaults and semantics in the options are the server's. A plan does not include admission, and
// validates only with Validate of the options.
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

// markEqual sets Equal in each conflict whose path is at the given version and whose two values are equal for a server.
// If live lacks the field and the intent sets it to a value that is not empty, Equal stays false, because the server
// may move the value to another field, like stringData of a Secret.
func (p *Plan) markEqual(version string) {
	changed := p.semantics.Compare(p.typ, p.before, p.after)
	all := changed.Added.Union(changed.Modified).Union(changed.Removed)
	for i := range p.Conflicts {
		c := &p.Conflicts[i]
		isElsewhere := c.Live == nil && !isZero(c.Applied)
		c.Equal = c.APIVersion == version && !touches(all, c.Path) && !isElsewhere
	}
}

// isZero reports whether a server may treat a value as absent, because it is the zero value of its Go type.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// touches reports whether a set contains a path, a path above it, or a path below it.
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

// write is the planned apply.
type write struct {
	ctx context.Context
	*fieldmanager.FieldManager
	options fieldmanager.Options
	version string         // the version of the FieldManager
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

// checkPreconditions rejects an intent whose preconditions, such as its resourceVersion, do not match live.
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

// compare sets p.after to the object that a server would store, and p.before to live, both with the server's defaults.
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
		return nil // Equal objects have equal defaults. Most plans end here.
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

// change calls f, if it is not nil, with a copy of an object, and sets tree to the tree of the changed copy.
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

// Changes yields the fields of the object that change, without managed fields, in the order of [Changes]. For a
// conflict, it yields the changes of the apply with force. It yields nothing if the outcome is Unchanged or
// OwnershipOnly, or if the outcome is Conflict and the apply with force would change no value.
func (p *Plan) Changes() iter.Seq[Change] {
	return Changes(p.typ, p.semantics, p.before, p.after)
}

// Changes yields the fields that differ between two states of an object of type t: first the added fields, then the
// modified fields, the removed fields, and the reordered lists, each in the order of fieldpath.Set.All. If the only
// difference is in items that do not fit their type, such as items without a key, Changes yields their lists as
// modified. Changes yields nothing if both states are equal in the semantics. nil semantics compare values as JSON.
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
		added, removed := fieldsets.Topmost(c.Added), fieldsets.Topmost(c.Removed)
		// If only one of the objects has duplicates of an item, Compare reports the item as added and as removed.
		both := added.Intersection(removed)
		finder := values.NewFinder()
		for _, part := range [...]struct {
			kind ChangeKind
			set  *fieldpath.Set
		}{
			{Added, added.Difference(both)}, {Modified, c.Modified.Union(both)},
			{Removed, removed.Difference(both)}, {Reordered, reordered},
		} {
			for path, values := range finder.Pairs(typ, part.set, before, after) {
				if !yield(Change{part.kind, slices.Clone(path), values[0], values[1]}) {
					return
				}
			}
		}
	}
}
