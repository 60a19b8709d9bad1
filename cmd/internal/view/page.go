package view

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/lines"
	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/ownership/fights"
)

// WriteBlamePage writes blame reports as a page.
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

// writePage writes the plans as a page. For an object with conflicts, the page shows the live object, otherwise the
// object after the apply.
func (v *Plans) writePage(w io.Writer) error {
	for _, p := range v.Pruned {
		notes := []string{printable.Text(reason(&p))}
		v.page = append(v.page, page.Object{Title: p.Title(), Outcome: "pruned", Notes: notes})
	}
	return page.Write(w, "Plan", aboutObjects(v.page), v.page)
}

// PageOf returns a plan as an object of a page.
func (v PlanView) PageOf(ctx context.Context, p *planning.Planned, now time.Time) (page.Object, error) {
	out := page.Object{Title: p.Title(), Outcome: outcomeOf(p), Marks: map[string]page.Mark{}}
	if note := DeletionNote(p); note != "" {
		out.Notes = append(out.Notes, note)
	}
	tree := p.Desired.Object
	if p.Outcome != plans.Conflict {
		tree = p.ObjectAfter()
	}
	changes := page.Table{Title: "What changes", Head: []string{"Change", "Field", "Before", "After"}}
	for change := range p.Changes() {
		if p.Desired.Object == nil {
			break // all fields are new
		}
		before, after := changeTexts(change)
		changes.Rows = append(changes.Rows, []string{string(change.Kind), change.Path.Short(), before, after})
		out.Marks[change.Path.String()] = page.Changed
	}
	conflicts := conflictTable(p)
	for _, c := range p.Conflicts {
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
		for _, way := range slices.Concat(report.Ways, report.Unavailable) {
			ways.Rows = append(ways.Rows, []string{way.Name(), oneLine(way.Why)})
		}
		for _, s := range report.Suggestions {
			ways.Rows = append(ways.Rows, []string{conflictreport.SuggestionName(s), printable.Text(s.Why)})
		}
	}
	for _, t := range []page.Table{changes, conflicts, decided, ways} {
		if len(t.Rows) > 0 {
			out.Tables = append(out.Tables, t)
		}
	}
	v.Suggest.addDrift(&out, p.Drift)
	report, err := blame.New(Hide(tree), blame.Options{
		Now: now, Type: p.Kind.Typ, TypeAt: p.DeclaredAt, OtherPaths: p.OtherPaths(),
	})
	if err != nil {
		return out, fmt.Errorf("%s: %w", p.Title(), err)
	}
	out.Notes, out.Lines = slices.Concat(out.Notes, report.Notes()), lines.Of(report)
	return out, nil
}

// FailedPage returns the object that a page shows for a document without a plan.
func FailedPage(d *planning.Document, err error) page.Object {
	title := d.Where
	if d.Target != nil && d.Name != "" {
		title = d.Title()
	}
	return page.Object{
		Title: printable.Text(title), Outcome: "failed", Notes: strings.Split(printable.Lines(err.Error()), "\n"),
	}
}

func conflictTable(p *planning.Planned) page.Table {
	out := page.Table{Title: "Conflicts", Head: []string{"Field", "Owner", "Live value", "Applied value"}}
	for _, c := range HideConflicts(p.Found()) {
		live, applied := conflictreport.ConflictTexts(c)
		out.Rows = append(out.Rows, []string{c.Path.Short(), describeKey(c.Owner), live, applied})
	}
	return out
}

// ConflictsOf returns the conflicts of a plan with the ways out of them.
func (v PlanView) ConflictsOf(ctx context.Context, p *planning.Planned) (page.Finding, error) {
	out := page.Finding{Kind: page.Conflict, Title: fmt.Sprintf("%s with %q",
		printable.Counted(len(p.Conflicts), "conflict", "conflicts"), printable.Text(p.Desired.Manager)),
		Table: conflictTable(p), Count: len(p.Conflicts)}
	report, err := v.ReportOf(ctx, p)
	for _, way := range slices.Concat(report.Ways, report.Unavailable) {
		out.Ways = append(out.Ways, v.Suggest.way(way.Name(), way.Suggestion))
	}
	for _, s := range report.Suggestions {
		out.Ways = append(out.Ways, v.Suggest.way(conflictreport.SuggestionName(s), s))
	}
	return out, err
}

// oneLine returns a text, such as the reasons why a server refuses a way out, on one line.
func oneLine(text string) string { return printable.Text(strings.ReplaceAll(text, "\n", "; ")) }

func (s Suggest) way(name string, suggestion advice.Suggestion) page.Way {
	return page.Way{Name: name, Text: oneLine(suggestion.Why), Command: printable.Text(s.line(suggestion))}
}

var titles = map[fights.Kind]string{
	fights.Fight: "managers undo each other", fights.Flap: "one manager sets two values by turns",
	fights.IdleWriter: "writes that change nothing except times", fights.Growth: "managed fields grow",
}

// FightOf returns a finding of a tracker with suggestions, for a page.
func FightOf(suggest Suggest, f fights.Finding, now time.Time) page.Finding {
	f = HideFinding(f)
	out := page.Finding{Kind: page.Fight, Title: titles[f.Kind], Count: 1, Table: page.Table{
		Head: []string{"Field", "By", "Times", "Since", "Last"},
		Rows: [][]string{{printable.Text(fieldOf(f)), printable.Text(sidesOf(f)), timesOf(f), ago(now, f.Since),
			ago(now, f.Last)}},
	}}
	for _, s := range fightAdvice(f) {
		out.Ways = append(out.Ways, suggest.way("", s))
	}
	return out
}
