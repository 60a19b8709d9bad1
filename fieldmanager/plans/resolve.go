package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Resolution is a way out of the conflicts of an apply, ready to be taken.
type Resolution struct {
	// Intent is what to apply in the place of what conflicted. It shares memory with
	// it, and with live.
	Intent *unstructured.Unstructured
	// Force is whether the apply has to be forced.
	Force bool
	// Forced are the conflicts that are decided by force; none when Force is false.
	Forced conflicts.Conflicts
	// Plan is what applying Intent does. Its outcome is never Conflict.
	Plan *Plan
}

// Resolve returns the intent that comes of deciding each conflict of an apply,
// field by field (spec rule 13.4). The arguments are those of Apply; decide is asked once for each
// conflict, in their fixed order, and says
//
//	conflicts.Force   the field stays in the intent, and is taken from its owners
//	conflicts.GiveUp  it is left out; so is a struct or list that loses everything
//	                  by it, but an item or map entry stays as long as it has its key
//	conflicts.Share   it has live's value; where live has none, it is left out
//
// A server knows no force for some fields: it forces all conflicts of a request or
// none. That is why what is not to be forced leaves the intent, or takes on live's
// value. So that nothing is forced that nobody saw, an intent that forces some of the
// conflicts only gets live's resourceVersion, if it has one: a server answers
// 409 when the object has changed since, and Resolve has to be asked again.
//
// Without conflicts, the intent is applied's own. The error is Plan's; or says that
// two owners' conflicts over one field were decided differently; that a field is to
// be forced and what holds it is not; that live's value is none that an intent may
// have (duplicates, undeclared fields); or that a conflict can't be told from here,
// because it is about a field that another API version has and the intent's has not.
func Resolve(ctx context.Context, m *fieldmanager.FieldManager, live, applied runtime.Object,
	decide func(conflicts.Conflict) conflicts.Way, options Options) (*Resolution, error) {
	options.Force = false
	plan, err := New(ctx, m, live, applied, options)
	if err != nil {
		return nil, err
	}
	tree, err := gostruct.Tree(applied)
	if err != nil {
		return nil, err
	}
	out := &Resolution{Intent: &unstructured.Unstructured{Object: tree}, Plan: plan}
	if plan.Outcome != Conflict {
		return out, nil
	}
	version := m.Kind().GroupVersion().String()
	liveTree, t, err := m.At(ctx, live, version)
	if err != nil {
		return nil, err
	}
	ways, err := decisions(t, plan.Conflicts, tree, version, decide, out)
	if err != nil {
		return nil, err
	}
	var there, absent []fieldpath.Path
	inLive := allPaths(t, liveTree)
	for p := range ways[conflicts.Share].All() {
		if inLive.Has(p) {
			there = append(there, slices.Clone(p))
		} else {
			absent = append(absent, slices.Clone(p))
		}
	}
	isStrict := m.Options().FieldValidation == metav1.FieldValidationStrict
	if tree, err = withShared(t, tree, liveTree, fieldpath.NewSet(there...), isStrict); err != nil {
		return nil, err
	}
	forced := ways[conflicts.Force]
	tree = leaveOut(t, tree, ways[conflicts.GiveUp].Union(fieldpath.NewSet(absent...)), forced)
	for p := range forced.Difference(allPaths(t, tree)).All() {
		return nil, fmt.Errorf("%s: to be forced, but what holds it is left out", p)
	}
	out.Force = !forced.Empty()
	if out.Force && len(out.Forced) < len(plan.Conflicts) {
		tree = withVersionOf(tree, liveTree)
	}
	out.Intent = &unstructured.Unstructured{Object: tree}
	options.Force = out.Force
	if out.Plan, err = New(ctx, m, live, out.Intent, options); err != nil {
		return nil, err
	}
	for _, c := range out.Plan.Conflicts {
		if !forced.Has(c.Path) {
			return nil, fmt.Errorf("%s: still in conflict with %q after it was decided", c.Path, c.Owner.Manager)
		}
	}
	return out, nil
}

// allPaths returns the paths of all that is in a tree, containers included. To look
// many paths up in it costs less than to look for each in the tree.
func allPaths(t *typed.Type, tree map[string]any) *fieldpath.Set {
	return t.Compare(map[string]any{}, tree).Added
}

// decisions asks for the way out of each conflict, and returns the fields of the
// intent by way.
func decisions(t *typed.Type, all conflicts.Conflicts, intent map[string]any, version string,
	decide func(conflicts.Conflict) conflicts.Way, out *Resolution) (map[conflicts.Way]*fieldpath.Set, error) {
	ways := map[conflicts.Way][]fieldpath.Path{}
	decided := map[string]conflicts.Way{}
	inIntent := allPaths(t, intent)
	for _, c := range all {
		way := decide(c)
		if way > conflicts.Force {
			return nil, fmt.Errorf("%s: no such way out of a conflict: %s", c.Path, way)
		}
		path := c.Path
		if !inIntent.Has(path) {
			return nil, fmt.Errorf("%s: the conflict with %q is about a field of %s that the intent, of %s, does not have",
				path, c.Owner.Manager, c.APIVersion, version)
		}
		if before, twice := decided[path.String()]; twice && before != way {
			return nil, fmt.Errorf("%s: decided twice, once %s and once %s", path, before, way)
		}
		decided[path.String()] = way
		if way == conflicts.Force {
			out.Forced = append(out.Forced, c)
		} else {
			path = withoutKeyField(path)
		}
		ways[way] = append(ways[way], path)
	}
	sets := map[conflicts.Way]*fieldpath.Set{}
	for way, paths := range ways {
		sets[way] = fieldpath.NewSet(paths...)
	}
	return sets, nil
}

// withoutKeyField returns the path of the item when p is one of the fields of its
// key: an item can't be without its key, nor have another.
func withoutKeyField(p fieldpath.Path) fieldpath.Path {
	if len(p) < 2 {
		return p
	}
	name, ok := p[len(p)-1].Field()
	fields, isItem := p[len(p)-2].Key()
	if ok && isItem {
		for _, f := range fields {
			if f.Name == name {
				return p[:len(p)-1]
			}
		}
	}
	return p
}

// withShared returns an intent with live's values at the paths of set, all of which
// live has. If it is strict, it must not get undeclared fields.
func withShared(t *typed.Type, intent, live map[string]any, set *fieldpath.Set, isStrict bool) (map[string]any, error) {
	if set.Empty() {
		return intent, nil
	}
	all := t.FieldSet(live)
	// With everything that is below: the shapes may differ.
	part := t.Extract(live, set.Union(all.AtOrBelow(set)), true)
	shared, err := t.Merge(intent, part, typed.Rules{Duplicates: true, Unknown: true})
	if err == nil {
		_, err = t.Merge(live, shared.Value, typed.Rules{Unknown: !isStrict})
	}
	if err != nil {
		// An update may have left in live what no intent may have (spec rule 1.3).
		return nil, fmt.Errorf("live's value can't be shared: %w", err)
	}
	out, _ := shared.Value.(map[string]any)
	return out, nil
}

// LeaveOut returns an intent for m without the paths of set and what is below them. With
// them go the declared fields that held nothing else, which would be owned if they
// were empty; items and entries of maps stay. The result shares memory with the
// intent. The error is a [fieldmanager.ObjectError].
func LeaveOut(ctx context.Context, m *fieldmanager.FieldManager, applied runtime.Object, set *fieldpath.Set) (
	*unstructured.Unstructured, error) {
	tree, t, err := m.At(ctx, applied, m.Kind().GroupVersion().String())
	if err == nil {
		err = t.Validate(tree, typed.Rules{Duplicates: true, Unknown: true})
	}
	if err != nil {
		return nil, &fieldmanager.ObjectError{Role: fieldmanager.AppliedObject, Err: err}
	}
	return &unstructured.Unstructured{Object: leaveOut(t, tree, set, nil)}, nil
}

// leaveOut returns an intent without the paths of set, and without the declared
// fields that held nothing else, but for those of kept: an empty one would be owned.
// Items and entries of maps stay, empty: to own them, too, is to keep what others have
// in them.
func leaveOut(t *typed.Type, intent map[string]any, set, kept *fieldpath.Set) map[string]any {
	if set.Empty() {
		return intent
	}
	// A declared field goes when something in it goes and nothing stays: no leaf, with
	// which empty lists count, and no item or entry.
	content := t.FieldSet(intent).Union(allPaths(t, intent).Leaves())
	stays := content.RecursiveDifference(set)
	goes := t.WithDeclared(content.Difference(stays)).Difference(t.WithDeclared(stays.Union(kept)))
	out, _ := t.Remove(intent, set.Union(goes)).(map[string]any)
	return out
}

// withVersionOf returns an intent with the resourceVersion of live: it is refused once live has changed.
func withVersionOf(intent, live map[string]any) map[string]any {
	stored, _ := live["metadata"].(map[string]any)
	version, _ := stored["resourceVersion"].(string)
	metadata, ok := intent["metadata"].(map[string]any)
	if version == "" || !ok {
		return intent
	}
	intent, metadata = maps.Clone(intent), maps.Clone(metadata)
	metadata["resourceVersion"] = version
	intent["metadata"] = metadata
	return intent
}
