package view

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Ask sends a dry run of the apply to the server. The result replaces the plan, or its error: Plan may be nil. The
// error is why the server refuses the apply. isAllowed is false, and the plan stays, if the user may not apply.
func (p *Planned) Ask(ctx context.Context, at place.Place, subresource string) (isAllowed bool, err error) {
	var known conflicts.Conflicts
	plan := plans.Plan{}
	if p.Plan != nil {
		plan, known = *p.Plan, p.Plan.Conflicts
	}
	answer, err := p.Desired.Ask(ctx, at, p.Options.Force, subresource, known)
	if apierrors.IsForbidden(err) && p.Plan != nil && !p.MayWrite(ctx, at, subresource) {
		return false, nil
	}
	if err != nil {
		return true, place.ServerError(err)
	}
	p.Options.Found, plan.Conflicts = answer.Conflicts, answer.Conflicts
	if len(answer.Conflicts) > 0 {
		plan.Outcome = plans.Conflict
	} else {
		plan.Outcome, p.Served = p.ServedOutcome(answer.Object), answer.Object
	}
	p.Plan = &plan
	return true, nil
}

// Half is a list item that stays, because another manager owns it, when an apply removes fields from it.
type Half struct {
	Owner managedfields.Key
	Item  fieldpath.Path
}

// Halves returns the list items of which the plan removes fields, and which stay because others own them.
func (p *Planned) Halves() (out []Half) {
	if p.Plan == nil || p.Desired.Object == nil {
		return nil
	}
	list, _, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for change := range p.Plan.Changes() {
		for n := len(change.Path) - 1; change.Kind == plans.Removed && n > 0; n-- {
			item := change.Path[:n]
			if !item[n-1].IsKey() || seen[item.String()] {
				continue
			}
			for i := range list {
				if e := &list[i]; e.Key.Manager != p.Desired.Manager && e.Owned().Has(item) {
					seen[item.String()] = true
					out = append(out, Half{e.Key, slices.Clone(item)})
					break
				}
			}
		}
	}
	return out
}
