package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Operation is a planned upgrade, install or rollback of a release.
type Operation struct {
	*Rendering
	Place       place.Place
	Manager     string // Helm's field manager
	Now         func() time.Time
	Concurrency int
	// Planned has the plan of each template that is not a hook.
	Planned []planning.Planned
	// Moves describes the fields that have moved to Helm's manager.
	Moves   []string
	isBegun bool
	watched []planning.Planned // all objects that the operation may change
	before  []map[string]any   // the objects of watched when Begin was called, with managed fields
}

// Documents returns the objects of the templates that are not hooks, as Helm applies them.
func (r *Rendering) Documents() (docs []document.Document) {
	for _, t := range r.Templates {
		if t.Hook() == "" {
			docs = append(docs, document.Document{Source: t.Source, Tree: r.Mark(t.Tree)})
		}
	}
	return docs
}

// Removed returns the existing objects of an older revision that Helm would delete: objects that are neither planned
// nor among known, and that no annotation keeps. The error joins the errors of objects that can't be read.
func (o *Operation) Removed(
	ctx context.Context, older []Template, known ...*place.Target,
) (out []*place.Target, errs error) {
	keys := map[place.Key]bool{}
	for _, p := range o.Planned {
		keys[place.KeyOf(p.Target)] = true
	}
	for _, t := range known {
		keys[place.KeyOf(t)] = true
	}
	for _, old := range older {
		t, _, err := o.Place.Live(ctx, old.Tree)
		switch {
		case err != nil:
			errs = errors.Join(errs, fmt.Errorf("%s: not known whether it is pruned: %w", &old, err))
		case t.Object != nil && !keys[place.KeyOf(t)] && !IsKept(t):
			out = append(out, t)
		}
	}
	return out, errs
}

// Left returns the result of Removed for a failed revision, but only objects that belong to the release. Helm itself
// does not delete these objects.
func (o *Operation) Left(ctx context.Context, failed []Template, known ...*place.Target) ([]*place.Target, error) {
	found, err := o.Removed(ctx, failed, known...)
	return slices.DeleteFunc(found, func(t *place.Target) bool { return !o.Has(t) }), err
}

// Begin checks that the planned objects, and the objects to be deleted, have not changed. It then moves fields to
// Helm's manager, and returns the templates that Helm applies. It is the last step before Helm's first write, and
// writes nothing before all checks have passed.
func (o *Operation) Begin(ctx context.Context, deleted ...*place.Target) ([]Template, error) {
	o.watched = slices.Clone(o.Planned)
	for _, t := range deleted {
		o.watched = append(o.watched, planning.Planned{Desired: &place.Desired{Target: t}})
	}
	o.before = make([]map[string]any, len(o.watched))
	errs := make([]error, len(o.watched))
	workqueue.ParallelizeUntil(ctx, o.Concurrency, len(o.watched), func(i int) {
		_, o.before[i], errs[i] = o.reload(ctx, o.watched[i])
	})
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	o.isBegun = true
	for _, p := range o.Planned {
		if err := o.move(ctx, p); err != nil {
			return nil, err
		}
	}
	return o.Intents(), nil
}

// IsBegun reports whether anything may have been written.
func (o *Operation) IsBegun() bool { return o.isBegun }

// Explain adds to an error which objects had been written before it.
func (o *Operation) Explain(ctx context.Context, err error) error {
	if err == nil || !o.isBegun {
		return err
	}
	ctx = context.WithoutCancel(ctx) // err may be the error of ctx
	var written []string
	for i, p := range o.watched {
		current, target := *p.Desired, *p.Target
		current.Target = &target
		if unread := reload(ctx, o.Place, &target); unread != nil {
			written = append(written, fmt.Sprintf("perhaps %s, which can't be read: %s", p.Title(), unread))
		} else if len(differences(nil, o.before[i], steady(&current), nil)) > 0 {
			written = append(written, p.Title())
		}
	}
	return fmt.Errorf("%w\nwritten before that: %s", err, cmp.Or(strings.Join(written, ", "), "no object"))
}

// reload reads a target again. If the object does not exist, reload returns no error.
func reload(ctx context.Context, p place.Place, t *place.Target) error {
	err := p.Reload(ctx, t)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	return err
}

// reload reads the object of a plan again. It returns the object as the plan sees it and as it is stored. It returns
// an error if the object has changed since it was planned.
func (o *Operation) reload(
	ctx context.Context, p planning.Planned,
) (current planning.Planned, is map[string]any, err error) {
	desired, target := *p.Desired, *p.Target
	desired.Target = &target
	current = planning.Planned{Desired: &desired}
	if err = reload(ctx, o.Place, &target); err == nil {
		is = steady(&desired)
	}
	if err == nil && p.Moved {
		err = current.MoveToApply(ctx)
	}
	if err != nil {
		return current, is, fmt.Errorf("%s: %w", p.Title(), err)
	}
	if fields := differences(nil, steady(p.Desired), steady(current.Desired), nil); len(fields) > 0 {
		err = fmt.Errorf("%s: %s has changed since it was shown: run the command again", p.Title(), fields[0])
	}
	return current, is, err
}

// steady returns an object without parts that change by themselves: status and its entries, times, resourceVersion and
// generation.
func steady(w *place.Desired) map[string]any {
	if w.Target.Object == nil {
		return nil
	}
	u := (&unstructured.Unstructured{Object: w.Stored().Object}).DeepCopy()
	entries := slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "status"
	})
	for i := range entries {
		entries[i].Time = nil
	}
	u.SetManagedFields(entries)
	delete(u.Object, "status")
	for _, name := range []string{"resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	return u.Object
}

// forced returns the decisions of a plan that force a field.
func forced(p planning.Planned) (out []planning.Decided) {
	for _, d := range p.Decided {
		if d.Decision == conflicts.Force {
			out = append(out, d)
		}
	}
	return out
}

// HasMoves reports whether fields must move before the object is applied.
func HasMoves(p planning.Planned) bool { return p.Moved || len(forced(p)) > 0 }

// move makes two moves in one write: fields in Helm's Update entry move to its Apply entry, and fields that the policy
// forces move from their owners to Helm's manager.
func (o *Operation) move(ctx context.Context, p planning.Planned) error {
	if !HasMoves(p) {
		return nil
	}
	for attempt := 1; ; attempt++ {
		current, _, err := o.reload(ctx, p)
		if err != nil {
			return err
		}
		if err = o.moveIn(ctx, current.Desired, forced(p)); err == nil {
			break
		}
		if !errors.Is(err, place.ErrStale) || attempt == place.Attempts { // retry: the status may have changed
			return fmt.Errorf("%s: %w", p.Title(), err)
		}
	}
	var names []string
	if p.Moved {
		names = append(names, "the fields of client-side apply")
	}
	for _, d := range forced(p) {
		names = append(names, fmt.Sprintf("%s of %q", d.Path.Short(), d.Owner.Manager))
	}
	o.Moves = append(o.Moves, fmt.Sprintf("%s: moved to %q: %s", p.Title(), o.Manager, strings.Join(names, ", ")))
	return nil
}

// moveIn writes the managed fields of an object after the forced fields have moved to Helm's manager.
func (o *Operation) moveIn(ctx context.Context, w *place.Desired, forced []planning.Decided) error {
	with := w.Stored()
	object := place.Wrap(with.Object)
	var moves []ownership.Move
	for _, d := range forced {
		to := managedfields.KeyOf(o.Manager, metav1.ManagedFieldsOperationApply, "", "")
		moves = append(moves, ownership.Transfer{Fields: fieldpath.NewSet(d.Path), From: d.Owner, To: to})
	}
	if len(moves) > 0 {
		result, err := with.Mover(o.Now).Do(ctx, object, moves...)
		if err != nil {
			return err
		}
		object = result.Object
	}
	entries, err := managedfields.Read(object)
	if err != nil {
		return err
	}
	patch, err := entries.JSONPatch(object)
	if err != nil {
		return err
	}
	return o.Place.Move(ctx, w.Target, place.Moved{Object: place.Unwrap(object), Patch: patch, Manager: place.Sender})
}

// Intents returns the templates that Helm applies and stores, with conflicts resolved by the decisions of the policy.
func (o *Operation) Intents() []Template {
	out, i := slices.Clone(o.Templates), 0
	for n, t := range out {
		if t.Hook() != "" {
			continue
		}
		if p := &o.Planned[i]; len(p.Decided) > 0 {
			out[n].Tree = o.Unmark(p.Manifest(p.Stored().Tree), t.Tree)
			unstructured.RemoveNestedField(out[n].Tree, "metadata", "resourceVersion") // the moves changed it
		}
		i++
	}
	return out
}
