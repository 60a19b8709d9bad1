package plans

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/resetfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Resolution is an intent that results from decisions about conflicts. All conflicts that the intent still has are
// forced.
type Resolution struct {
	// Intent is the intent to apply. It shares memory with the original intent and with live.
	Intent *unstructured.Unstructured
	// Force means that the apply must be forced.
	Force bool
	// Forced are the conflicts that were decided by force; none if Force is false.
	Forced conflicts.Conflicts
	// Plan is the plan of applying Intent. Its outcome is never Conflict.
	Plan *Plan
}

// String returns a text for logs. It contains no values of objects.
func (r Resolution) String() string { return fmt.Sprintf("%v, force: %t", r.Plan, r.Force) }

// Resolve decides the conflicts of an apply one by one, and returns the resulting intent (spec rule 13.4). It has the
// same arguments as Apply. If there are conflicts, decide is called once, and returns a decision for each conflict; it
// can call policy.Policy.Resolve.
//
//	conflicts.Force   the field stays in the intent, and is taken from its owners
//	conflicts.GiveUp  the field is removed from the intent, with structs and lists that contained nothing else;
//	                  items and map entries around it stay
//	conflicts.Share   the field gets live's value, or is removed from the intent if live has no value
//	conflicts.Refuse  the error has all conflicts, as for Apply without force
//
// A server forces either all conflicts of a request or none. So fields that must not be forced are removed from the
// intent, or get live's value. If only some conflicts are forced, the intent gets live's resourceVersion, if live has
// one. If the object has changed since, the server therefore responds with 409, and does not force conflicts that
// decide has not seen. Then call Resolve again.
//
// Servers copy the stringData of a Secret to its data, without a check of who owns data. So options.Found may also have
// conflicts over fields of data that stringData sets. To give up or share such a field removes it from stringData, too.
// Its owners keep it even if it is forced, so it is then not in Forced.
//
// Without conflicts, the intent does not change. The error is [New]'s, or says, for example, that
//
//   - conflicts of two owners over one field were decided differently;
//   - a field is to be forced, but its container is given up;
//   - an intent can't have live's value, because of duplicates or undeclared fields;
//   - a conflict is over a field that the intent does not have at its API version, and not all conflicts are forced.
func Resolve(ctx context.Context, m *fieldmanager.FieldManager, live, applied runtime.Object,
	decide func(conflicts.Conflicts) []conflicts.Decision, options Options) (*Resolution, error) {
	options.Force = false
	plan, err := New(ctx, m, live, applied, options)
	if err != nil {
		return nil, err
	}
	tree, _ := gostruct.Tree(applied) // cannot fail, because New has read it
	out := &Resolution{Intent: &unstructured.Unstructured{Object: tree}, Plan: plan}
	if plan.Outcome != Conflict {
		return out, nil
	}
	version := m.Kind().GroupVersion().String()
	liveTree, t, err := m.At(ctx, live, version)
	if err != nil {
		return nil, err
	}
	d := decider{t: t, version: version, intent: allPaths(t, tree)}
	d.isSecret = m.Kind().GroupKind() == schema.GroupKind{Kind: "Secret"}
	given := tree
	d.wholes.FieldSet = func(string) *fieldpath.Set { return t.FieldSet(given) }
	decided, err := d.decisions(plan.Conflicts, given, decide, out)
	if err != nil {
		return nil, err
	}
	options.Found = nil // the conflicts are decided
	if len(decided[conflicts.GiveUp])+len(decided[conflicts.Share]) == 0 {
		// The intent does not change. It need not contain the fields in conflict, which may be at another version.
		out.Force = len(out.Forced) > 0
		options.Force = out.Force
		out.Plan, err = New(ctx, m, live, out.Intent, options)
		return out, err
	}
	forced, shared := fieldpath.NewSet(decided[conflicts.Force]...), fieldpath.NewSet(decided[conflicts.Share]...)
	existing := shared.Intersection(allPaths(t, liveTree))
	if tree, err = withShared(t, tree, liveTree, existing); err != nil {
		return nil, err
	}
	left := fieldpath.NewSet(decided[conflicts.GiveUp]...).Union(shared.Difference(existing))
	out.Force = !forced.IsEmpty()
	options.Force = out.Force
	// An item or map entry stays when a field in it is removed. If live has null in its place, the item or entry is
	// then in conflict itself, and is removed, too.
	for {
		tree = leaveOut(t, tree, left, forced)
		for p := range forced.Difference(allPaths(t, tree)).All() {
			return nil, fmt.Errorf("%s: to be forced, but what holds it is left out", p)
		}
		out.Intent = &unstructured.Unstructured{Object: tree}
		stored, _, _ := unstructured.NestedString(liveTree, "metadata", "resourceVersion")
		if out.Force && stored != "" {
			out.Intent.Object = resetfields.Restore(liveTree, tree, resourceVersion)
		}
		if out.Plan, err = New(ctx, m, live, out.Intent, options); err != nil {
			return nil, err
		}
		var paths []fieldpath.Path
		for _, c := range out.Plan.Conflicts {
			path := d.inIntent(c)
			if forced.Has(path) {
				continue
			}
			if _, exists := t.Get(tree, path); !exists {
				return nil, fmt.Errorf("%s: still in conflict with %q after it was decided", c.Path, c.Owner.Manager)
			}
			paths = append(paths, withoutKeyField(t, tree, path))
		}
		if left = fieldpath.NewSet(paths...); left.IsEmpty() {
			return out, nil
		}
	}
}

// resourceVersion is the field that makes a server reject an intent if live has changed.
var resourceVersion = fieldpath.NewSet(fieldpath.NewPath("metadata", "resourceVersion"))

// allPaths returns the paths of all values in a tree, including containers. If many paths are looked up, this set is
// faster than the tree.
func allPaths(t *typed.Type, tree map[string]any) *fieldpath.Set {
	return t.Compare(map[string]any{}, tree).Added
}

// waysOut are the decisions that end a conflict.
var waysOut = []conflicts.Decision{conflicts.Force, conflicts.GiveUp, conflicts.Share}

// decider finds the fields of an intent that are in conflict.
type decider struct {
	t       *typed.Type
	version string
	intent  *fieldpath.Set // the paths of all values in the intent
	wholes  fieldsets.Wholes
	// isSecret is true if the intent is a Secret.
	isSecret bool
}

// inIntent returns the path of the intent's field that is in conflict. This is the path of the conflict, unless that
// path is of another version and inside a value that the intent owns as a whole: then it is the path of that value.
func (d *decider) inIntent(c conflicts.Conflict) fieldpath.Path {
	if c.APIVersion == d.version {
		return c.Path
	}
	return d.wholes.Around(c.Path, d.version)
}

// source returns the field of stringData that sets the field of data that is in conflict; nil if there is none.
func (d *decider) source(c conflicts.Conflict) fieldpath.Path {
	if !d.isSecret || len(c.Path) != 2 || c.Path[0] != fieldpath.FieldElement("data") {
		return nil
	}
	if path := (fieldpath.Path{fieldpath.FieldElement("stringData"), c.Path[1]}); d.intent.Has(path) {
		return path
	}
	return nil
}

// decisions calls decide, and returns the fields of the intent by decision.
func (d *decider) decisions(all conflicts.Conflicts, intent map[string]any,
	decide func(conflicts.Conflicts) []conflicts.Decision, out *Resolution,
) (map[conflicts.Decision][]fieldpath.Path, error) {
	chosen := decide(slices.Clone(all))
	switch {
	case len(chosen) != len(all):
		return nil, fmt.Errorf("expected %d decisions about conflicts, got %d", len(all), len(chosen))
	case slices.Contains(chosen, conflicts.Refuse):
		return nil, all
	}
	fields := map[conflicts.Decision][]fieldpath.Path{}
	decided := map[string]conflicts.Decision{}
	isPartial := slices.ContainsFunc(chosen, func(d conflicts.Decision) bool { return d != conflicts.Force })
	for i, c := range all { // a field that is not copied to data is in no other conflict
		if source := d.source(c); source != nil && chosen[i] != conflicts.Force {
			fields[conflicts.GiveUp] = append(fields[conflicts.GiveUp], source)
		}
	}
	sources := fieldpath.NewSet(fields[conflicts.GiveUp]...)
	for i, c := range all {
		decision := chosen[i]
		if !slices.Contains(waysOut, decision) {
			return nil, fmt.Errorf("%s: no way out of a conflict: expected one of %s, got %.40q", c.Path, waysOut, decision)
		}
		path := d.inIntent(c)
		if sources.Has(path) {
			continue
		}
		isCopied := d.source(c) != nil && !d.intent.Has(path)
		if isPartial && !isCopied && !d.intent.Has(path) {
			return nil, fmt.Errorf("%s: %q owns this field at %s, and the intent, at %s, does not have it: "+
				"force all conflicts, or change the fields of the intent that set it",
				path, c.Owner.Manager, c.APIVersion, d.version)
		}
		if before, twice := decided[path.String()]; twice && before != decision {
			return nil, fmt.Errorf("%s: decided twice, once %s and once %s", path, before, decision)
		}
		decided[path.String()] = decision
		switch {
		case decision == conflicts.Force && isCopied:
			continue // the server sets it without force
		case decision == conflicts.Force:
			out.Forced = append(out.Forced, c)
		default:
			path = withoutKeyField(d.t, intent, path)
		}
		fields[decision] = append(fields[decision], path)
	}
	return fields, nil
}

// withoutKeyField returns the path to remove from the intent in place of p. If p is a key field of an item, this is the
// path of the item, because the item needs its key fields. But if the key field has its default, p itself is returned,
// because the item has the same key without the field.
func withoutKeyField(t *typed.Type, intent map[string]any, p fieldpath.Path) fieldpath.Path {
	if !fieldsets.IsKeyField(p) {
		return p
	}
	item := p[:len(p)-1]
	if _, isSelected := t.Get(t.Remove(intent, fieldpath.NewSet(p)), item); isSelected {
		return p
	}
	return item
}

// withShared returns an intent with live's values at the paths of set. live must have these paths.
func withShared(t *typed.Type, intent, live map[string]any, set *fieldpath.Set) (map[string]any, error) {
	if set.IsEmpty() {
		return intent, nil
	}
	all := t.FieldSet(live)
	// Extract everything below the paths, because live's value may have other fields than the intent's.
	part := t.Extract(live, set.Union(all.AtOrBelow(set)), true)
	shared, err := t.Merge(intent, part, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	if err == nil {
		_, err = t.Merge(live, shared.Value, typed.Rules{AllowUnknown: true})
	}
	if err != nil {
		// An update may have stored a value that intents may not have (spec rule 1.3).
		return nil, fmt.Errorf("live's value can't be shared: %w", err)
	}
	out, _ := shared.Value.(map[string]any)
	return out, nil
}

// LeaveOut returns applied, an intent for m, without the paths of set and the paths below them. It also removes
// declared fields that contained nothing else, because the manager would own them as empty fields. It does not remove
// items and map entries. The result shares memory with the intent. The error is a [fieldmanager.ObjectError].
func LeaveOut(ctx context.Context, m *fieldmanager.FieldManager, applied runtime.Object, set *fieldpath.Set) (
	*unstructured.Unstructured, error) {
	if m == nil {
		return nil, errNoFieldManager
	}
	tree, t, err := m.At(ctx, applied, m.Kind().GroupVersion().String())
	if err == nil {
		err = t.Validate(tree, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	}
	if err != nil {
		return nil, &fieldmanager.ObjectError{Role: fieldmanager.AppliedObject, Err: err}
	}
	return &unstructured.Unstructured{Object: leaveOut(t, tree, set, nil)}, nil
}

// leaveOut is LeaveOut for a tree. It does not remove declared fields in kept. Items and map entries stay even if they
// become empty, because a manager that drops them could remove fields in them that others own.
func leaveOut(t *typed.Type, intent map[string]any, set, kept *fieldpath.Set) map[string]any {
	if set.IsEmpty() {
		return intent
	}
	// A declared field is removed if something in it is removed, and no leaf, empty list, item or map entry in it
	// stays.
	content := t.FieldSet(intent).Union(allPaths(t, intent).Leaves())
	stays := content.RecursiveDifference(set)
	goes := t.WithDeclared(content.Difference(stays)).Difference(t.WithDeclared(stays.Union(kept)))
	out, _ := t.Remove(intent, set.Union(goes)).(map[string]any)
	return out
}
