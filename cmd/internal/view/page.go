package view

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/lines"
	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

// WriteBlamePage writes the reports of blame as a page.
func WriteBlamePage(w io.Writer, reports []*blame.Report) error {
	objects := make([]page.Object, len(reports))
	for i, r := range reports {
		objects[i] = page.Object{Title: printable.Text(r.Title()), Notes: r.Notes(), Lines: lines.Of(r)}
	}
	return page.Write(w, "Who owns what", aboutObjects(objects), objects)
}

func aboutObjects(all []page.Object) string {
	if len(all) == 1 {
		return all[0].Title
	}
	return printable.Counted(len(all), "object", "objects")
}

// writePage writes the plans as a page: of an object in conflict the live lines, of the others those after the apply.
func (v *Plans) writePage(w io.Writer) error {
	for _, p := range v.Pruned {
		notes := []string{printable.Text(p.reason())}
		v.page = append(v.page, page.Object{Title: p.Title(), Outcome: "pruned", Notes: notes})
	}
	return page.Write(w, "Plan", aboutObjects(v.page), v.page)
}

func (v PlanView) pageOf(ctx context.Context, p *planning.Planned, now time.Time) (page.Object, error) {
	out := page.Object{Title: p.Title(), Outcome: p.Outcome.String(), Marks: map[string]page.Mark{}}
	tree := p.Desired.Object
	if p.Outcome != plans.Conflict {
		tree = p.ObjectAfter()
	}
	changes := page.Table{Title: "What changes", Head: []string{"Change", "Field", "Before", "After"}}
	for change := range p.Changes() {
		change = hideChange(change)
		before, after := conflictreport.Texts(change.Before, change.After)
		changes.Rows = append(changes.Rows, []string{string(change.Kind), change.Path.Short(), before, after})
		out.Marks[change.Path.String()] = page.Changed
	}
	conflicts := page.Table{Title: "Conflicts", Head: []string{"Field", "Owner", "Live value", "Applied value"}}
	for _, c := range HideConflicts(p.Conflicts) {
		live, applied := conflictreport.Texts(c.Live, c.Applied)
		conflicts.Rows = append(conflicts.Rows, []string{c.Path.Short(), describeKey(c.Owner), live, applied})
		out.Marks[c.Path.String()] = page.Conflict
	}
	decided := page.Table{Title: "Decided by the policy", Head: []string{"Decision", "Field", "Owner", "By"}}
	for _, d := range p.Decided {
		decided.Rows = append(decided.Rows, []string{
			string(d.Decision), d.Path.Short(), describeKey(d.Owner), printable.Text(d.Verdict.String()),
		})
	}
	ways := page.Table{Title: "Ways out", Head: []string{"Way", "What it does"}}
	if p.Outcome == plans.Conflict {
		report, err := v.ReportOf(ctx, p)
		if err != nil {
			return out, err
		}
		for _, way := range report.Ways {
			text := way.Why
			if way.Refused != "" {
				text = "the server refuses it: " + way.Refused
			}
			ways.Rows = append(ways.Rows, []string{way.Name(), printable.Text(text)})
		}
	}
	for _, t := range []page.Table{changes, conflicts, decided, ways} {
		if len(t.Rows) > 0 {
			out.Tables = append(out.Tables, t)
		}
	}
	report, err := blame.New(Hide(tree), blame.Options{Now: now, Type: p.Kind.Typ})
	if err != nil {
		return out, fmt.Errorf("%s: %w", p.Title(), err)
	}
	out.Notes, out.Lines = slices.Concat(out.Notes, report.Notes()), lines.Of(report)
	return out, nil
}
