package planning

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// Decided is a conflict with the policy's decision and the rule that made it. Its path is a path in the object, even if
// the plan is for a Scale; see [Target.InParent].
type Decided struct {
	conflicts.Conflict
	policy.Verdict
}

// Decide decides the conflicts of a plan by the policy rules; if rules is nil, it does nothing. For a Scale, the policy
// decides about the object that the Scale belongs to. Decide also decides about values of other managers that
// stringData of a Secret would overwrite, although a server does not report these as conflicts. If the policy refuses
// conflicts, only these conflicts remain in the plan. Otherwise, Decide replaces intent and plan by the resolved ones;
// if there is a server, the plan has the result of another dry run.
func (p *Planned) Decide(ctx context.Context, at place.Place, rules *policy.Policy, subresource string) error {
	if rules == nil || p.Plan == nil {
		return nil
	}
	found := p.Conflicts
	all := append(slices.Clone(found), p.overwritten()...)
	p.Options.Found = all
	var refused conflicts.Conflicts
	named := p.inParent(all)
	for i, v := range rules.Decide(p.Metadata(), named) {
		p.Decided = append(p.Decided, Decided{named[i], v})
		if v.Decision == conflicts.Refuse {
			refused = append(refused, all[i])
		}
	}
	if len(refused) > 0 {
		plan := *p.Plan
		plan.Conflicts, plan.Outcome = refused, plans.Conflict
		p.Plan, p.Options.Found = &plan, refused
	}
	if len(refused) > 0 || len(all) == 0 {
		return nil
	}
	shown, err := p.resolve(ctx, p.Desired)
	stored := shown
	if with := p.Stored(); err == nil && with != p.Desired {
		stored, err = p.resolve(ctx, with)
	}
	if err != nil {
		return err
	}
	p.Desired, p.Plan, p.Served = p.With(stored.Intent.Object), shown.Plan, nil
	p.Options.Force, p.Options.Found = shown.Force, nil
	if isServed, canDryRun := p.IsServed(); isServed && canDryRun && !p.Moved && p.Outcome != plans.Unchanged {
		_, err = p.Ask(ctx, at, subresource)
	}
	return err
}

// overwritten returns, as conflicts, the values of other managers that stringData would overwrite, without those that
// are in conflict anyway.
func (p *Planned) overwritten() (out conflicts.Conflicts) {
	given, _ := p.Tree["stringData"].(map[string]any)
	for _, field := range p.StringData() {
		isKnown := func(c conflicts.Conflict) bool { return c.Owner == field.Owner && c.Path.Equal(field.Field) }
		if field.Owner.Manager == "" || slices.ContainsFunc(p.Conflicts, isKnown) {
			continue
		}
		name, _ := field.Field[len(field.Field)-1].Field()
		live, _ := p.Kind.Typ.Get(p.Desired.Object, field.Field)
		out = append(out, conflicts.Conflict{
			Path: field.Field, Owner: field.Owner, APIVersion: p.Kind.GroupVersion().String(), Live: live, Applied: given[name],
		})
	}
	return out
}

// Metadata returns the part of the live object's metadata that policies read.
func (p *Planned) Metadata() *metav1.PartialObjectMetadata {
	t := p.Parent()
	live := &unstructured.Unstructured{Object: t.Object}
	out := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: live.GetLabels()},
	}
	out.SetGroupVersionKind(t.Kind.GroupVersionKind)
	return out
}

// inParent returns conflicts with the paths that their fields have in the object, see [Target.InParent].
func (p *Planned) inParent(all conflicts.Conflicts) conflicts.Conflicts {
	out := slices.Clone(all)
	for i := range out {
		out[i].Path = p.InParent(out[i].Path)
	}
	return out
}

// resolve resolves the conflicts of an intent by the decisions. w is either p.Desired, or the same intent with the
// values of a Secret.
func (p *Planned) resolve(ctx context.Context, w *place.Desired) (*plans.Resolution, error) {
	choose := func(all conflicts.Conflicts) []conflicts.Decision {
		out := make([]conflicts.Decision, len(all))
		for i, c := range all {
			for _, d := range p.Decided {
				if d.Owner == c.Owner && d.Path.Equal(p.InParent(c.Path)) {
					out[i] = d.Decision
				}
			}
		}
		return out
	}
	return plans.Resolve(ctx, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), choose, p.Options)
}
