package oracle

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Laws are the laws of every apply, for any type, history and version:
//
//   - If the same intent is applied again, neither the object nor an entry changes.
//   - The outcome of a plan of this second apply is [plans.Unchanged].
//   - Applying the result of [fieldmanager.FieldManager.Extract] for the manager's entry changes nothing.
//   - The outcome of a plan is the outcome of the apply.
//
// There is one exception (spec rule 4.2), because no intent owns an empty list: if an intent drops the last item of a
// list, the apply also removes the list, even if the intent contains the empty list. The second apply adds the empty
// list, and nothing else, or conflicts over it. The third apply changes nothing, except that it may add entries to an
// object without entries.
type Laws struct {
	// At returns a field manager whose clock always returns the given time. Its options are the same for every time,
	// and reset no fields.
	At func(time.Time) (*fieldmanager.FieldManager, error)
	// Type is the type of the objects.
	Type *typed.Type
	// Through returns the stored form of an object. The given object may be unstructured. If Through is nil, objects
	// are stored unchanged. Through may drop nulls and empty containers, like Go structs. Then times of entries are not
	// compared, because each apply of a null changes the merged object again (spec rule 2.3).
	Through func(runtime.Object) (runtime.Object, error)
	// Semantics decide when the plan of a stored object is unchanged.
	Semantics *typed.Semantics
}

// Check applies an intent to live at a time, and returns an error if a law does not hold. live is nil if the object
// does not exist. applied is false if the apply was rejected.
func (l Laws) Check(live, intent runtime.Object, manager string, force bool, now time.Time) (applied bool, err error) {
	m, err := l.At(now)
	if err != nil {
		return false, err
	}
	first, applyErr := writetest.Apply(m, live, intent.DeepCopyObject(), manager, force)
	options := plans.Options{Manager: manager, Force: force, Semantics: l.Semantics}
	plan, planErr := plans.New(context.Background(), m, live, intent.DeepCopyObject(), options)
	if applyErr == nil {
		if first, err = l.stored(first); err != nil {
			return false, nil // no server can store this object, so the intent is not applied to it again
		}
	}
	if err := l.comparePlan(plan, planErr, live, first, applyErr); err != nil || applyErr != nil {
		return false, err
	}
	if m, err = l.At(now.Add(time.Minute)); err != nil {
		return false, err
	}
	if keepsLastApplied(manager, first) && hasNullAnnotation(intent) {
		return true, nil // the null is stored as an empty string, which the next apply changes again, as in upstream
	}
	stored, err := l.checkAgain(m, first, intent, manager, force)
	if err != nil {
		return false, fmt.Errorf("applied again: %w", err)
	}
	if stored == nil {
		return true, nil
	}
	plan, err = plans.New(context.Background(), m, stored, intent.DeepCopyObject(), options)
	if err != nil {
		return false, fmt.Errorf("planned again: %w", err)
	}
	if plan.Outcome != plans.Unchanged {
		return false, fmt.Errorf("planned again: %s, the object is %s", plan.Outcome, JSON(stored))
	}
	return true, l.checkExtracted(m, stored, manager)
}

// checkAgain applies an intent to the stored result of its first apply. It returns the object that another apply would
// not change; nil if the apply conflicts over an empty list, or if nobody owns a field.
func (l Laws) checkAgain(
	m *fieldmanager.FieldManager,
	first, intent runtime.Object,
	manager string,
	force bool,
) (runtime.Object, error) {
	second, err := l.apply(m, first, intent, manager, force)
	if l.overEmptyLists(err, first, intent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	difference := l.compare(first, second)
	if difference == nil {
		return second, nil
	}
	a, b, err := treesOf(first, second)
	if err != nil {
		return nil, err
	}
	if !addsEmptyLists(without(a), without(b)) || !l.addsIntent(a, b, intent) {
		return nil, difference
	}
	third, err := l.apply(m, second, intent, manager, force)
	if err != nil {
		return nil, fmt.Errorf("a third time: %w", err)
	}
	if len(managedFields(b)) == 0 {
		// An intent with only empty lists owns nothing. If nobody owns anything, the next apply finds an untracked
		// object (spec rule 1.4).
		return nil, l.compareObjects(second, third)
	}
	if err := l.compare(second, third); err != nil {
		return nil, fmt.Errorf("a third time: %w", err)
	}
	return third, nil
}

// overEmptyLists reports whether an apply conflicts only over values that the first apply did not store as they are in
// the intent: empty lists, which the first apply omitted; empty maps that a Go struct omitted; and nulls for which a Go
// struct has an empty struct.
func (l Laws) overEmptyLists(err error, first, intent runtime.Object) bool {
	var all conflicts.Conflicts
	tree, intentErr := treeOf(intent)
	before, firstErr := treeOf(first)
	if !errors.As(err, &all) || intentErr != nil || firstErr != nil {
		return false
	}
	through, throughErr := l.storedTree(tree)
	return !slices.ContainsFunc(all, func(c conflicts.Conflict) bool {
		if v, isThere := l.Type.Get(before, c.Path); isThere {
			wanted, _ := l.Type.Get(tree, c.Path)
			kept, isKept := l.Type.Get(through, c.Path)
			m, isMap := v.(map[string]any)
			return wanted != nil || !isMap || len(m) > 0 || throughErr != nil || !isKept || !reflect.DeepEqual(v, kept)
		}
		switch v, _ := l.Type.Get(tree, c.Path); v := v.(type) {
		case []any:
			return len(v) > 0
		case map[string]any:
			_, isKept := l.Type.Get(through, c.Path)
			return len(v) > 0 || throughErr != nil || isKept
		}
		return true
	})
}

// keepsLastApplied reports whether an apply by a manager updates the annotation of client-side apply in an object. Such
// an apply replaces nulls among the other annotations by empty strings.
func keepsLastApplied(manager string, obj runtime.Object) bool {
	return manager == "kubectl" && strings.Contains(JSON(obj), fieldmanager.LastAppliedAnnotation)
}

func hasNullAnnotation(obj runtime.Object) bool {
	tree, _ := treeOf(obj)
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return slices.Contains(slices.Collect(maps.Values(annotations)), nil)
}

// addsIntent reports whether after equals the stored form of before with the intent merged into it.
func (l Laws) addsIntent(before, after map[string]any, intent runtime.Object) bool {
	tree, err := treeOf(intent)
	if err != nil {
		return false
	}
	merged, err := l.Type.Merge(without(before), without(tree), typed.Rules{AllowUnknown: true})
	if err != nil {
		return false
	}
	stored, err := l.storedTree(merged.Value.(map[string]any))
	return err == nil && reflect.DeepEqual(without(stored), without(after))
}

// storedTree returns a tree as it is stored: a Go struct omits nulls, and empty maps and lists with omitempty.
func (l Laws) storedTree(tree map[string]any) (map[string]any, error) {
	obj, err := l.stored(&unstructured.Unstructured{Object: tree})
	if err != nil {
		return nil, err
	}
	return treeOf(obj)
}

// checkExtracted applies the extracted intent of a manager's entry.
func (l Laws) checkExtracted(m *fieldmanager.FieldManager, stored runtime.Object, manager string) error {
	tree, err := treeOf(stored)
	if err != nil {
		return err
	}
	if keepsLastApplied(manager, stored) {
		return nil // the annotation depends on the intent, and the extracted intent differs
	}
	entries, err := managedfields.DecodeTree(managedFields(tree))
	if err != nil {
		return err
	}
	for _, e := range entries {
		version, _ := tree["apiVersion"].(string)
		if e.Key != managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", "") || e.APIVersion != version {
			continue
		}
		extracted, err := m.Extract(context.Background(), stored, e.Owned())
		var invalid typed.Errors
		if errors.As(err, &invalid) {
			continue // values that an update stored in live
		}
		if err != nil {
			return fmt.Errorf("extracting: %w", err)
		}
		owned, err := m.FieldSet(context.Background(), extracted)
		if err != nil {
			return fmt.Errorf("fields of the extracted %s: %w", JSON(extracted.Object), err)
		}
		if lost := e.Owned().Difference(owned); !lost.IsEmpty() {
			if l.ownable(tree, lost) {
				return fmt.Errorf("the extracted %s does not own %v", JSON(extracted.Object), lost)
			}
			continue
		}
		again, err := l.apply(m, stored, extracted, manager, false)
		if err == nil {
			err = l.compare(stored, again)
		}
		if err != nil {
			return fmt.Errorf("applying the extracted %s: %w", JSON(extracted.Object), err)
		}
	}
	return nil
}

// ownable reports whether a path of set selects a value in tree that an intent can own. An empty list can't be owned
// (spec rule 4.2).
func (l Laws) ownable(tree map[string]any, set *fieldpath.Set) bool {
	for path := range set.Leaves().All() {
		v, ok := l.Type.Get(tree, path)
		if list, isList := v.([]any); ok && !(isList && len(list) == 0) {
			return true
		}
	}
	return false
}

// comparePlan compares the plan of an apply with the result of the apply. The apply was made to the object live.
func (l Laws) comparePlan(plan *plans.Plan, planErr error, live, stored runtime.Object, applyErr error) error {
	var conflicting conflicts.Conflicts
	if errors.As(applyErr, &conflicting) {
		if planErr == nil && plan.Outcome == plans.Conflict && sameConflicts(plan.Conflicts, conflicting) {
			return nil
		}
		return fmt.Errorf("plan: %v, error: %v; apply: %v", plan, planErr, applyErr)
	}
	if fmt.Sprint(planErr) != fmt.Sprint(applyErr) {
		return fmt.Errorf("plan's error: %v, apply's: %v", planErr, applyErr)
	}
	if applyErr != nil {
		return nil
	}
	want := plans.Changed
	if live != nil {
		before, after, err := treesOf(live, stored)
		if err != nil {
			return err
		}
		switch {
		case !l.Semantics.Equal(l.Type, clientsOf(before), clientsOf(after)):
		case reflect.DeepEqual(undated(managedFields(before)), undated(managedFields(after))):
			want = plans.Unchanged
		default:
			want = plans.OwnershipOnly
		}
	}
	if plan.Outcome != want {
		return fmt.Errorf("plan: %s, apply: %s, stored: %s", plan.Outcome, want, JSON(stored))
	}
	return nil
}

// clientsOf returns a tree without the fields that only a server sets, which a plan does not change (spec rule 13.1).
func clientsOf(tree map[string]any) map[string]any {
	tree = without(tree)
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok {
		return tree
	}
	for _, name := range []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "selfLink", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds",
	} {
		delete(metadata, name)
	}
	if len(metadata) == 0 {
		delete(tree, "metadata")
	}
	return tree
}

func (l Laws) apply(
	m *fieldmanager.FieldManager,
	live, intent runtime.Object,
	manager string,
	force bool,
) (runtime.Object, error) {
	out, err := writetest.Apply(m, live.DeepCopyObject(), intent.DeepCopyObject(), manager, force)
	if err != nil {
		return nil, err
	}
	return l.stored(out)
}

func (l Laws) stored(obj runtime.Object) (runtime.Object, error) {
	if l.Through == nil {
		return obj, nil
	}
	return l.Through(obj)
}

// compareObjects returns an error if an apply changed its object, apart from managed fields.
func (l Laws) compareObjects(before, after runtime.Object) error {
	a, b, err := treesOf(before, after)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(without(a), without(b)) {
		return fmt.Errorf("the object changed from %s to %s", JSON(without(a)), JSON(without(b)))
	}
	return nil
}

// compare returns an error if an apply changed its object or its managed fields.
func (l Laws) compare(before, after runtime.Object) error {
	if err := l.compareObjects(before, after); err != nil {
		return err
	}
	a, b, err := treesOf(before, after)
	if err != nil {
		return err
	}
	x, y := managedFields(a), managedFields(b)
	if l.Through != nil {
		x, y = timeless(x), timeless(y)
	}
	if !reflect.DeepEqual(x, y) {
		return fmt.Errorf("the managed fields changed from %s to %s", JSON(x), JSON(y))
	}
	return nil
}

// addsEmptyLists reports whether after is before with added empty lists that before lacks or has as null. The maps and
// structs around these lists may be added, too, if they contain nothing else.
func addsEmptyLists(before, after any) bool {
	switch a := after.(type) {
	case map[string]any:
		b, ok := before.(map[string]any)
		if !ok {
			return false
		}
		for name := range b {
			if _, ok := a[name]; !ok {
				return false
			}
		}
		for name, v := range a {
			old, ok := b[name]
			isSame := ok && addsEmptyLists(old, v)
			if !isSame && (old != nil || !onlyEmptyLists(v)) {
				return false
			}
		}
		return true
	case []any:
		b, ok := before.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !addsEmptyLists(b[i], a[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(before, after)
}

// onlyEmptyLists reports whether v is an empty list, or a map that contains only such values.
func onlyEmptyLists(v any) bool {
	switch x := v.(type) {
	case []any:
		return len(x) == 0
	case map[string]any:
		for _, entry := range x {
			if !onlyEmptyLists(entry) {
				return false
			}
		}
		return len(x) > 0
	}
	return false
}

func treesOf(x, other runtime.Object) (a, b map[string]any, err error) {
	if a, err = treeOf(x); err == nil {
		b, err = treeOf(other)
	}
	return a, b, err
}

func treeOf(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// sameConflicts reports whether a plan has the same conflicts as an apply. It ignores whether values are equal for a
// server, because the conflicts of an apply do not report this.
func sameConflicts(planned, applied conflicts.Conflicts) bool {
	planned = slices.Clone(planned)
	for i := range planned {
		planned[i].Equal = false
	}
	return reflect.DeepEqual(planned, applied)
}
