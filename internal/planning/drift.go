package planning

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/excess"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Drift is the drift of an object, see [excess.FindDrift], with the ways to end it.
type Drift struct {
	Fields  []Drifted
	Unowned []excess.Drifted
	// Err is the reason why the drift is not known; then there are no fields.
	Err error
}

// Drifted is a drifting field, with the ways to end its drift.
type Drifted struct {
	excess.Drifted
	Ways []advice.Suggestion
}

// FindDrift finds drift in the live object of the plan. It checks with dry runs that the suggested removals work.
func (p *Planned) FindDrift(ctx context.Context, asking Asking, rules *policy.Policy) {
	p.Drift = &Drift{}
	if p.Desired.Object == nil {
		return
	}
	found, err := excess.FindDrift(place.Wrap(p.Desired.Object), excess.DriftOptions{
		Type: p.Kind.Typ, TypeAt: p.TypeAt, Manifest: withData(p.Tree), Applier: p.Desired.Manager, Policy: rules,
		Defaulter: p.Options.Defaulter,
	})
	if p.Drift.Err = err; err != nil {
		return
	}
	after, owned := p.Desired.Object, p.ownedLive()
	if p.Outcome != plans.Conflict {
		after = p.ObjectAfter()
	}
	isGone := func(f excess.Drifted) bool { // this apply ends the drift
		_, stays := p.Kind.Typ.Get(after, f.Path)
		return !stays
	}
	p.Drift.Unowned = slices.DeleteFunc(found.Unowned, isGone)
	for _, f := range found.Fields {
		if isGone(f) || p.isMigrated(f.Path) {
			continue
		}
		var ways []advice.Suggestion
		for _, way := range waysOf(p.Target, f, p.Desired.Manager, asking.Place.IsServed) {
			if move, ok := way.Action.(advice.Move); ok {
				isTried, works := p.removesAfter(ctx, asking, move.Move, f, owned)
				if !works {
					continue
				}
				if !isTried {
					way = advice.Untried(way)
				}
			}
			ways = append(ways, way)
		}
		p.Drift.Fields = append(p.Drift.Fields, Drifted{f, ways})
	}
}

// ownedLive returns the fields of the live object that have owners.
func (p *Planned) ownedLive() (owned *fieldpath.Set) {
	entries, _ := managedfields.Read(place.Wrap(p.Desired.Object)) // as for the plan, there is no error
	for i := range entries {
		owned = owned.Union(p.Kind.Typ.Reconcile(entries[i].Owned()))
	}
	return owned
}

// isMigrated reports whether kubectl itself removes a field when it applies with its default manager.
func (p *Planned) isMigrated(path fieldpath.Path) bool {
	isApplied := p.Desired.Manager == KubectlManager && p.Outcome != plans.Conflict
	return isApplied && slices.ContainsFunc(p.Migration, func(c plans.Change) bool {
		return c.Kind == plans.Removed && len(c.Path) <= len(path) && path[:len(c.Path)].Equal(c.Path)
	})
}

// removesAfter reports whether the next apply after a move removes a field, and no other field of owned. If the field
// has several owners, the next apply need not remove it. isTried is false if the budget allows no dry run.
func (p *Planned) removesAfter(
	ctx context.Context, asking Asking, move ownership.Move, f excess.Drifted, owned *fieldpath.Set,
) (isTried, works bool) {
	w := p.Desired.Stored()
	moved, err := w.Mover(asking.Now).Do(ctx, place.Wrap(w.Object), move)
	if err != nil {
		return false, false
	}
	untried := 0
	if asking.Budget != nil {
		untried = asking.Budget.Unasked
	}
	field := fieldpath.NewSet(f.Path)
	_, ok, err := p.promise(ctx, asking, moved.Object, func(removes *fieldpath.Set) bool {
		removed := removes.AtOrBelow(field)
		others := p.beyond(removes).Difference(removed).Intersection(owned)
		return others.IsEmpty() && (len(f.Owners) > 1 || !removed.IsEmpty())
	})
	return asking.Budget == nil || asking.Budget.Unasked == untried, ok && err == nil
}

// promise plans the next apply to live, the object after a move. The promise has the leaves that the next apply
// removes, and says whether the next apply has no conflicts although p has conflicts. ok is false if isWanted returns
// false for the leaves, or if the server rejects the move or the apply.
func (p *Planned) promise(
	ctx context.Context, asking Asking, live runtime.Object, isWanted func(removes *fieldpath.Set) bool,
) (promise advice.Promise, ok bool, err error) {
	w := p.Desired.Stored()
	next, err := p.next(ctx, w, live)
	if err != nil {
		return promise, false, err
	}
	promise.Unblocks = p.Outcome == plans.Conflict && next.Outcome != plans.Conflict
	if next.Outcome == plans.Conflict { // find what the apply removes once its conflicts are resolved
		forced := *p
		forced.Options.Force = true
		if next, err = forced.next(ctx, w, live); err != nil {
			return promise, false, err
		}
	}
	if promise.Removes = p.removedBy(next, nil); !isWanted(fieldpath.NewSet(promise.Removes...)) {
		return promise, false, nil
	}
	if asking.take(p.Target) {
		served, err := p.send(ctx, asking, live, next)
		if err != nil && (!apierrors.IsForbidden(err) || p.MayWrite(ctx, asking.Place, "")) {
			if !isRefusal(err) {
				promise.Removes = nil // it is not known whether the suggestion works
			}
			return promise, false, nil //nolint:nilerr // the suggestion does not work
		}
		promise.Removes = p.removedBy(next, served)
	}
	return promise, isWanted(fieldpath.NewSet(promise.Removes...)), nil
}

// DriftOf finds drift in an object without a manifest: the fields that have owners, but none that the policy permits.
// isServed reports whether the object's cluster serves a kind.
func DriftOf(
	t *place.Target, rules *policy.Policy, isServed func(schema.GroupVersionKind) bool,
) (d Drift, err error) {
	if t.Kind.Unknown != nil {
		return d, t.Kind.Unknown
	}
	obj := place.Wrap(t.Object)
	found, err := excess.FindDrift(obj, excess.DriftOptions{
		Type: t.Kind.Typ, TypeAt: t.TypeAt, Policy: rules, Defaulter: t.PlanOptions(false).Defaulter,
	})
	d.Unowned = found.Unowned
	entries, _ := managedfields.Read(obj)
	for _, f := range found.Fields {
		var appliers []string
		for i := range entries {
			e := &entries[i]
			owner := policy.Owner{Manager: e.Manager, Operation: e.Operation}
			if e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" &&
				rules.Permits(metadataOf(t), owner, f.Path) {
				appliers = append(appliers, e.Manager)
			}
		}
		applier := ""
		if len(appliers) == 1 {
			applier = appliers[0]
		}
		ways := waysOf(t, f, applier, isServed)
		for i := range ways {
			if _, ok := ways[i].Action.(advice.Move); ok { // the manager's intent is not known
				ways[i] = advice.Untried(ways[i])
			}
		}
		d.Fields = append(d.Fields, Drifted{f, ways})
	}
	return d, err
}

// waysOf returns the ways to end the drift of a field. applier is the manager whose applies may remove it; empty if
// it is not known.
func waysOf(
	t *place.Target, f excess.Drifted, applier string, isServed func(schema.GroupVersionKind) bool,
) (out []advice.Suggestion) {
	first := f.Owners[0]
	version := first.APIVersion
	if name, _ := f.Path[0].Field(); name == "metadata" { // the same at all versions
		version = t.Kind.GroupVersion().String()
	}
	// Fields can't be extracted from an object with invalid values, such as an item without a key.
	isValid := t.Kind.Typ.Validate(t.Object, typed.Rules{AllowDuplicates: true, AllowUnknown: true}) == nil
	if objects, ok := ObjectsAt(t, version, isServed); ok && isValid {
		out = append(out, advice.TakeIn(objects, f.Path, first.Key()))
	}
	out = append(out, advice.Permit(t.Kind.GroupKind(), patternOf(t, f), first.Key()))
	for _, owner := range f.Owners {
		if applier != "" {
			out = append(out, advice.LetRemove(ObjectsOf(t), f.Path, owner.Key(), applier, len(f.Owners) == 1))
		}
	}
	return out
}

// patternOf returns a policy's pattern that matches a field: the path of the field or, if a policy would read this path
// as another pattern, an exact pattern.
func patternOf(t *place.Target, f excess.Drifted) string {
	text := f.Path.String()
	p := policy.Policy{Permissions: []policy.Permission{{Fields: []string{text}}}}
	if p.Permits(metadataOf(t), f.Owners[0].Owner, f.Path) {
		return text
	}
	return policy.Exactly(f.Path)
}

func metadataOf(t *place.Target) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: t.Name, Namespace: t.Namespace}}
	out.SetGroupVersionKind(t.Kind.GroupVersionKind)
	return out
}

// withData returns the manifest of a Secret with stringData copied into data, as the server does.
func withData(tree map[string]any) map[string]any {
	given, _ := tree["stringData"].(map[string]any)
	if len(given) == 0 || !secrets.Is(tree) {
		return tree
	}
	tree, data := maps.Clone(tree), map[string]any{}
	if known, ok := tree["data"].(map[string]any); ok {
		data = maps.Clone(known)
	}
	maps.Copy(data, given)
	tree["data"] = data
	return tree
}
