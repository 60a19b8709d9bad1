package view

import (
	"context"
	"io"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

// Report returns the report of the conflicts of a plan, without the values of Secrets.
func (p *Planned) Report(ctx context.Context) (conflictreport.Report, error) {
	out, err := conflictreport.New(ctx, p.Fields, place.Wrap(p.Desired.Object), place.Wrap(p.Tree), p.Title(), p.Options)
	out.Conflicts = HideConflicts(out.Conflicts)
	for i := range out.Ways {
		if secrets.Is(p.Tree) {
			out.Ways[i].Intent = nil // conflicts --resolve -o yaml prints it
		}
	}
	return out, err
}

// WriteConflicts writes a report of the conflicts of a plan, and what a policy decided about the others.
func (v PlanView) WriteConflicts(ctx context.Context, w io.Writer, p *Planned) error {
	report, err := p.Report(ctx)
	if err == nil {
		err = report.Render(w, v.Palette.Conflicts())
	}
	if err == nil {
		err = v.writeRules(w, p)
	}
	v.WriteDecided(w, p)
	return err
}
