package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/cmd/internal/helm"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
)

// replaceFunc returns the templates that Helm applies in place of those that it rendered.
type replaceFunc = func([]helm.Template) ([]helm.Template, error)

// write has Helm apply what was shown, to the objects as they were shown. Just before, fields move to Helm's manager.
// isBegun is true if something may have been written.
func (r *helmRun) write(
	ctx context.Context, p place.Place, u *helmPlan, run func(replaceFunc) error,
) (isBegun bool, err error) {
	all := slices.Clone(u.planned)
	for _, one := range u.pruned() {
		all = append(all, planning.Planned{Desired: &place.Desired{Target: one.Target}})
	}
	before := make([]map[string]any, len(all)) // owners included
	err = run(func([]helm.Template) ([]helm.Template, error) {
		if now, err := r.helm.History(ctx, u.Release); err != nil || now.Last() != u.history.Last() {
			return nil, cmp.Or(err, errors.New("the release has another revision now: run the command again"))
		}
		errs := make([]error, len(all))
		inParallel(r.env, "reading", r.concurrency, len(all), func(i int) {
			_, before[i], errs[i] = r.reload(ctx, p, all[i])
		})
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		isBegun = true
		for _, one := range u.planned {
			if err := r.move(ctx, p, one); err != nil {
				return nil, err
			}
		}
		return u.intents(), nil
	})
	if err == nil || !isBegun {
		return isBegun, err
	}
	var written []string
	for i, one := range all {
		now := *one.Desired
		if target := *one.Target; reloaded(ctx, p, &target) == nil {
			now.Target = &target
			if len(helm.Differences(before[i], steady(&now))) > 0 {
				written = append(written, one.Title())
			}
		}
	}
	return true, fmt.Errorf("%w\nwritten before that: %s", err, cmp.Or(strings.Join(written, ", "), "no object"))
}

// reloaded reads a target again, which need not exist.
func reloaded(ctx context.Context, p place.Place, t *place.Target) error {
	err := p.Reload(ctx, t)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	return err
}

// reload reads the object of a plan again, as it is planned and as it is. It is an error if it has changed since.
func (r *helmRun) reload(
	ctx context.Context, p place.Place, one planning.Planned,
) (now planning.Planned, is map[string]any, err error) {
	desired, target := *one.Desired, *one.Target
	desired.Target = &target
	now = planning.Planned{Desired: &desired}
	if err = reloaded(ctx, p, &target); err == nil {
		is = steady(&desired)
	}
	if err == nil && one.Moved {
		err = now.MoveToApply(ctx)
	}
	if err != nil {
		return now, is, fmt.Errorf("%s: %w", one.Title(), err)
	}
	if fields := helm.Differences(steady(one.Desired), steady(now.Desired)); len(fields) > 0 {
		err = fmt.Errorf("%s: %s has changed since it was shown: run the command again", one.Title(), fields[0])
	}
	return now, is, err
}

// steady returns an object without what changes while nobody changes it: its status, and the times and the version.
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

// move moves what Helm updated to its applies, and what a policy forces from its owners to Helm, in one write.
func (r *helmRun) move(ctx context.Context, p place.Place, one planning.Planned) error {
	var names []string
	if one.Moved {
		names = append(names, "the fields of client-side apply")
	}
	var forced []planning.Decided
	for _, d := range one.Decided {
		if d.Decision == conflicts.Force {
			forced = append(forced, d)
			names = append(names, fmt.Sprintf("%s of %q", d.Path.Short(), d.Owner.Manager))
		}
	}
	if len(names) == 0 {
		return nil
	}
	for attempt := 1; ; attempt++ {
		now, _, err := r.reload(ctx, p, one)
		if err != nil {
			return err
		}
		if err = r.moveIn(ctx, p, now.Desired, forced); err == nil {
			break
		}
		if !errors.Is(err, place.ErrStale) || attempt == place.Attempts { // its status may change meanwhile
			return fmt.Errorf("%s: %w", one.Title(), err)
		}
	}
	fmt.Fprintf(r.env.Stdout, "%s: moved to %q: %s\n", one.Title(), r.manager, strings.Join(names, ", "))
	return nil
}

// moveIn writes the managed fields of an object, after the forced fields moved to Helm's manager.
func (r *helmRun) moveIn(ctx context.Context, p place.Place, w *place.Desired, forced []planning.Decided) error {
	with := w.Stored()
	object := place.Wrap(with.Object)
	var moves []ownership.Move
	for _, d := range forced {
		owned, _, err := ownedBy(with.Target, d.Owner)
		if err != nil {
			return err
		}
		fields, err := namedFields([]string{d.Path.String()}, owned)
		if err != nil {
			return err
		}
		to := managedfields.KeyOf(r.manager, metav1.ManagedFieldsOperationApply, "", "")
		moves = append(moves, ownership.Transfer{Fields: fields, From: d.Owner, To: to})
	}
	if len(moves) > 0 {
		result, err := with.Mover(r.env.Now).Do(ctx, object, moves...)
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
	return p.Move(ctx, w.Target, place.Moved{Object: place.Unwrap(object), Patch: patch, Manager: sender})
}

// intents are the templates that Helm applies and stores: as shown, and as a policy decides their conflicts.
func (u *helmPlan) intents() []helm.Template {
	out, i := slices.Clone(u.Templates), 0
	for n, t := range out {
		if t.Hook() != "" {
			continue
		}
		if one := &u.planned[i]; len(one.Decided) > 0 {
			out[n].Tree = u.Unmark(one.Manifest(one.Stored().Tree), t.Tree)
			unstructured.RemoveNestedField(out[n].Tree, "metadata", "resourceVersion") // of a forced intent; fields moved since
		}
		i++
	}
	return out
}
