package view

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// Ask asks the server what it does with the apply, by a dry run. The server's answer takes the place of the plan, and of
// its error: Plan may be nil. The error is why the server refuses. isAllowed is false, and the plan stays, if the user
// may not apply.
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
	if plan.Outcome = plans.Conflict; len(answer.Conflicts) == 0 {
		plan.Outcome, p.Served = p.ServedOutcome(answer.Object), answer.Object
	}
	p.Plan = &plan
	return true, nil
}
