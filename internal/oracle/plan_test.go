package oracle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// RunPlans makes a type and writes from data, like Run, and compares the plan of every apply with the apply. It returns
// an error, with the whole history, at the first difference. seen has the number of applies by outcome.
func RunPlans(data []byte) (seen map[plans.Outcome]int, err error) {
	seen = map[plans.Outcome]int{}
	return seen, NewGen(data).play(func(w *World, write Write) (*unstructured.Unstructured, error) {
		out, err := w.Tenure(write, w.now)
		if write.Apply {
			outcome, planErr := w.comparePlan(write, w.now, out, err)
			if planErr != nil {
				return nil, planErr
			}
			if err == nil || outcome == plans.Conflict {
				seen[outcome]++
			}
		}
		if err != nil {
			fmt.Fprintf(w.story, "  refused: %v\n", err)
			return nil, nil
		}
		return w.stored(write, out), nil
	})
}

// comparePlan compares the plan of a write with out and err, which Apply returned.
func (w *World) comparePlan(
	write Write,
	now time.Time,
	out *unstructured.Unstructured,
	err error,
) (plans.Outcome, error) {
	m, newErr := w.manager(write, now)
	if newErr != nil {
		return 0, newErr
	}
	live := w.live(write.Version)
	var before runtime.Object
	if w.Live != nil {
		before = live
	}
	options := plans.Options{Manager: write.Manager, Force: write.Force, Defaulter: setDefaults}
	frozen := live.DeepCopy()
	_, _ = plans.New(context.Background(), m, before, write.Object, options) // must not change live
	options.Defaulter = nil
	plan, planErr := plans.New(context.Background(), m, before, write.Object, options)
	if !reflect.DeepEqual(live, frozen) {
		return 0, ErrChangedInput
	}
	var conflicting conflicts.Conflicts
	plannedForce := write.Force
	if errors.As(err, &conflicting) {
		if planErr != nil {
			return 0, planErr
		}
		if plan.Outcome != plans.Conflict || !sameConflicts(plan.Conflicts, conflicting) {
			return 0, fmt.Errorf("plan: %s with %v, apply: %v", plan.Outcome, plan.Conflicts, err)
		}
		write.Force = true
		if out, err = w.Tenure(write, now); err != nil {
			return 0, err
		}
	}
	if err != nil || planErr != nil {
		if fmt.Sprint(err) != fmt.Sprint(planErr) {
			return 0, fmt.Errorf("plan's error: %v, apply's: %v", planErr, err)
		}
		return 0, nil
	}
	merged := plan.Object.(*unstructured.Unstructured).Object
	if !typed.Equal(merged, out.Object) {
		return 0, fmt.Errorf("plan's object: %s, apply's: %s", JSON(merged), JSON(out.Object))
	}
	if err := compareOwnership(plan, live.Object, out.Object); err != nil {
		return 0, err
	}
	stored := w.stored(write, out)
	sameObject := w.Live != nil && typed.Equal(without(live.Object), without(stored.Object))
	want := plans.Changed
	switch {
	case len(conflicting) > 0:
		want = plans.Conflict
	case sameObject && reflect.DeepEqual(undated(managedFields(live.Object)), undated(managedFields(stored.Object))):
		want = plans.Unchanged
	case sameObject:
		want = plans.OwnershipOnly
	}
	if len(conflicting) > 0 && !plannedForce {
		if err := w.compareWays(m, live, write, conflicting, now); err != nil {
			return 0, err
		}
	}
	if plan.Outcome != want {
		return 0, fmt.Errorf("plan's outcome: %s, want %s; stored: %s", plan.Outcome, want, JSON(stored.Object))
	}
	changes := 0
	for range plan.Changes() {
		changes++
	}
	t := w.typeAt(write.Version)
	isValid := t.Validate(live.Object, typed.Rules{AllowDuplicates: true}) == nil
	if isValid && sameObject != (changes == 0) {
		return 0, fmt.Errorf("%d changes; stored: %s", changes, JSON(stored.Object))
	}
	return plan.Outcome, nil
}

// setDefaults sets, in place, a label if there are other labels, and controller: false in owner references without it.
func setDefaults(obj runtime.Object) {
	metadata, _ := obj.(*unstructured.Unstructured).Object["metadata"].(map[string]any)
	if labels, ok := metadata["labels"].(map[string]any); ok {
		labels["default"] = "yes"
	}
	owners, _ := metadata["ownerReferences"].([]any)
	for _, owner := range owners {
		if owner := owner.(map[string]any); owner["controller"] == nil {
			owner["controller"] = false
		}
	}
}

// stored returns the object that a server stores after an apply: reset fields are as before, and so are the times of
// entries if nothing else changed.
func (w *World) stored(write Write, out *unstructured.Unstructured) *unstructured.Unstructured {
	if w.Live == nil {
		return out
	}
	out = out.DeepCopy()
	live := w.live(write.Version).Object
	if !write.Apply {
		return out
	}
	put := func(from, to map[string]any, name string) {
		if v, ok := from[name]; ok {
			to[name] = runtime.DeepCopyJSONValue(v)
		} else {
			delete(to, name)
		}
	}
	if write.Subresource == "status" {
		status := out.Object
		entries := managedFields(status)
		out.Object = runtime.DeepCopyJSON(live)
		put(status, out.Object, "status")
		unstructured.RemoveNestedField(out.Object, "metadata", "managedFields")
		if len(entries) > 0 {
			_ = unstructured.SetNestedSlice(out.Object, entries, "metadata", "managedFields")
		}
		return out
	}
	put(live, out.Object, "status")
	return out
}

// compareOwnership compares the ownership changes of a plan with the managed fields before and after.
func compareOwnership(plan *plans.Plan, live, current map[string]any) error {
	before, err1 := managedfields.DecodeTree(managedFields(live))
	after, err2 := managedfields.DecodeTree(managedFields(current))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	said := map[managedfields.Key]plans.OwnershipChange{}
	for _, c := range plan.Ownership {
		said[c.Manager] = c
	}
	keys := map[managedfields.Key]bool{}
	for _, e := range slices.Concat(before, after) {
		keys[e.Key] = true
	}
	for k := range keys {
		old, now := before.Get(k), after.Get(k)
		c := said[k]
		delete(said, k)
		if !c.Gains.Equal(now.Owned().Difference(old.Owned())) || !c.Loses.Equal(old.Owned().Difference(now.Owned())) {
			return fmt.Errorf("%v gains %v and loses %v, but owned %v, and owns %v",
				k, c.Gains, c.Loses, old.Owned(), now.Owned())
		}
		var others *fieldpath.Set
		for _, e := range after {
			if e.Key != k { // the converter changes only the apiVersion
				others = others.Union(e.Owned())
			}
		}
		if !c.Shares.Equal(c.Gains.Intersection(others)) {
			return fmt.Errorf("%v shares %v of %v, but others own %v", k, c.Shares, c.Gains, others)
		}
		if !c.Removes.Difference(c.Loses).IsEmpty() {
			return fmt.Errorf("%v removes %v, which it does not lose", k, c.Removes)
		}
	}
	if len(said) > 0 {
		return fmt.Errorf("there are no entries of %v", said)
	}
	return nil
}

// compareWays resolves the conflicts of a write in each way, applies the resolution, and compares the result with the
// promise of the way.
func (w *World) compareWays(
	m *fieldmanager.FieldManager,
	live *unstructured.Unstructured,
	write Write,
	all conflicts.Conflicts,
	now time.Time,
) error {
	t := w.typeAt(write.Version)
	decisions := map[string]func(conflicts.Conflict) conflicts.Decision{
		"force":   func(conflicts.Conflict) conflicts.Decision { return conflicts.Force },
		"give up": func(conflicts.Conflict) conflicts.Decision { return conflicts.GiveUp },
		"share":   func(conflicts.Conflict) conflicts.Decision { return conflicts.Share },
		"mixed": func(c conflicts.Conflict) conflicts.Decision {
			return []conflicts.Decision{conflicts.GiveUp, conflicts.Share, conflicts.Force}[len(c.Path.String())%3]
		},
	}
	before, err := managedfields.DecodeTree(managedFields(live.Object))
	if err != nil {
		return err
	}
	var mine, elsewhere *fieldpath.Set // elsewhere is what the manager owns at another version
	for _, e := range before {
		if e.Manager == write.Manager && e.Operation == metav1.ManagedFieldsOperationApply {
			mine = mine.Union(e.Owned())
			if e.APIVersion != Kind(write.Version).GroupVersion().String() {
				elsewhere = elsewhere.Union(e.Owned())
			}
		}
	}
	for _, name := range sortedKeys(decisions) {
		options := plans.Options{Manager: write.Manager}
		decide := func(all conflicts.Conflicts) (out []conflicts.Decision) {
			for _, c := range all {
				out = append(out, decisions[name](c))
			}
			return out
		}
		r, err := plans.Resolve(context.Background(), m, live, write.Object, decide, options)
		var invalid typed.Errors
		if errors.As(err, &invalid) && t.Validate(live.Object, typed.Rules{}) != nil {
			continue // values that an update stored in live and that can't be shared
		}
		if err != nil && strings.Contains(err.Error(), "what holds it is left out") && name == "mixed" {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		resolved := write
		resolved.Object, resolved.Force = r.Intent, r.Force
		out, err := w.Tenure(resolved, now)
		if err != nil {
			return fmt.Errorf("%s: applying %s: %w", name, JSON(r.Intent.Object), err)
		}
		entries, err := managedfields.DecodeTree(managedFields(out.Object))
		if err != nil {
			return err
		}
		for _, c := range all {
			way := decisions[name](c)
			got, gotOK := t.Get(out.Object, c.Path)
			had, hadOK := t.Get(live.Object, c.Path)
			wanted, _ := t.Get(write.Object.Object, c.Path)
			owner := entries.Get(c.Owner)
			// Fields in it may have been decided differently, or may have belonged to the manager.
			whole := mine.RecursiveDifference(fieldpath.NewSet(c.Path)).Len() == mine.Len() &&
				!slices.ContainsFunc(all, func(o conflicts.Conflict) bool {
					return len(o.Path) > len(c.Path) && o.Path[:len(c.Path)].Equal(c.Path)
				})
			if list, ok := had.([]any); ok && len(list) == 0 && way != conflicts.Force {
				continue // removed with a struct whose other fields were dropped, as in upstream
			}
			if (had == nil || wanted == nil) && keepsLastApplied(write.Manager, live) &&
				len(c.Path) == 3 && c.Path[:2].Equal(fieldpath.NewPath("metadata", "annotations")) {
				continue // a null beside the annotation of client-side apply becomes an empty string
			}
			inItem := false // in an item owned at another version, which may be removed (spec rule 6.3)
			for n := 1; n < len(c.Path); n++ {
				inItem = inItem || elsewhere.Has(c.Path[:n])
			}
			if inItem && way != conflicts.Force {
				continue
			}
			switch way {
			case conflicts.Force:
				if owner.Owned().Has(c.Path) || whole && t.FieldSet(wanted) == nil && !typed.Equal(got, wanted) {
					return fmt.Errorf("%s: %s is %s of %v, want %s", name, c.Path, JSON(got), owner.Owned(), JSON(wanted))
				}
			default:
				if hadOK != gotOK || whole && t.FieldSet(had) == nil && !typed.Equal(got, had) ||
					hadOK && !owner.Owned().Has(c.Path) {
					return fmt.Errorf(
						"%s: %s is %s of %v, had %s; intent %s",
						name,
						c.Path,
						JSON(got),
						owner.Owned(),
						JSON(had),
						JSON(r.Intent.Object),
					)
				}
			}
		}
	}
	return nil
}
