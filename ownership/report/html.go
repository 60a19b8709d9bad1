package report

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/webpage"
	"github.com/tenure-ssa/tenure/ownership/blame"
)

var (
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
	//go:embed page/page.html
	pageHTML string
)

// HTML writes a summary as one page that needs nothing but itself, in the style of blame's: charts, tables
// that can be sorted and searched, and the lines of each example with their managers.
func HTML(w io.Writer, s *Summary) error {
	return webpage.Write(w, pageHTML, newPage(s))
}

// page is what the page shows. All text in it is plain.
type page struct {
	webpage.Assets

	Summary     string
	Tiles       []tile
	Charts      []chart
	Suggestions []Suggestion
	Tables      []table
	Objects     []pageObject

	classes map[string]string // of managers
}

type tile struct {
	Figure, Name, Note string
	Warn               bool
}

type table struct {
	Title, Note string
	Objects     bool
	Columns     []column
	Rows        []row
}

type column struct {
	Name   string
	Number bool
}

type row struct {
	Cells []cell
}

// cell is text, a number, a manager or a link.
type cell struct {
	Text, Class, Link string
	Number            bool
	Value             float64
}

type pageObject struct {
	Anchor, Title, Kind, Namespace, Name, Command, More string

	Lines []pageLine
}

type pageLine struct {
	Number  int
	Text    string
	Chips   []chip
	Unowned bool
}

type chip struct{ Class, Name string }

// The limits of a page: browsers are slow beyond.
const (
	maxRows  = 2000 // of a table
	maxLines = 2000 // of an object
)

func newPage(s *Summary) *page {
	p := &page{classes: map[string]string{}, Summary: fmt.Sprintf("%s of %s", counted(s.Objects, "object", "objects"),
		counted(len(s.Kinds), "kind", "kinds"))}
	examples := s.Examples
	reports := make([]*blame.Report, len(examples))
	names := map[string]bool{}
	for i := range examples {
		reports[i] = blameOf(&examples[i], s.Now)
		if reports[i] != nil {
			for j := range reports[i].Entries {
				names[reports[i].Entries[j].Manager] = true
			}
		}
	}
	for i := range s.Managers[:min(len(s.Managers), maxRows)] {
		names[s.Managers[i].Name] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	for i, name := range sorted {
		p.classes[name] = fmt.Sprintf("m m%d", i)
	}
	p.Assets = webpage.NewAssets(pageCSS, pageJS, webpage.Hues(sorted))
	p.Tiles = tiles(s)
	p.Charts = charts(s, p.classes)
	for _, suggestion := range s.Suggestions {
		p.Suggestions = append(p.Suggestions, Suggestion{printable.Text(suggestion.Why), printable.Text(suggestion.Command)})
	}
	p.Tables = []table{p.managers(s), p.kinds(s), p.examples(s)}
	if len(s.Gone) > 0 {
		p.Tables = append(p.Tables, p.gone(s))
	}
	for i := range examples {
		p.Objects = append(p.Objects, p.object(i, &examples[i], reports[i], &s.options))
	}
	return p
}

// blameOf returns the blame of an example; nil if it can't be made.
func blameOf(e *Example, now time.Time) *blame.Report {
	o := blame.Options{Now: now}
	if e.Object.Types != nil {
		o.Type, _ = e.Object.Types.Type(e.GroupVersionKind) // nil without one
	}
	r, err := blame.New(e.Object.Tree, o)
	if err != nil {
		return nil
	}
	return r
}

func text(s string) cell { return cell{Text: printable.Text(s)} }

func number(n int) cell { return cell{Text: fmt.Sprint(n), Number: true, Value: float64(n)} }

func size(n int) cell { return cell{Text: Bytes(n), Number: true, Value: float64(n)} }

func percent(f float64) cell {
	return cell{Text: fmt.Sprintf("%.0f %%", f*100), Number: true, Value: f}
}

func when(t *time.Time) cell {
	if t == nil {
		return cell{Number: true}
	}
	return cell{Text: t.Format("2006-01-02 15:04"), Number: true, Value: float64(t.Unix())}
}

// columns returns the columns of names; those that begin with # have numbers.
func columns(names ...string) (out []column) {
	for _, name := range names {
		rest, isNumber := strings.CutPrefix(name, "#")
		out = append(out, column{rest, isNumber})
	}
	return out
}

func (p *page) managers(s *Summary) table {
	t := table{Title: "Managers", Columns: columns("Manager", "Operations", "#Objects", "#Entries", "#Fields",
		"#Managed fields", "#Share of them", "#Last write", "Kinds")}
	for i := range s.Managers[:min(len(s.Managers), maxRows)] {
		m := &s.Managers[i]
		kinds := strings.Join(m.Kinds[:min(len(m.Kinds), 3)], ", ")
		if more := len(m.Kinds) - 3; more > 0 {
			kinds += fmt.Sprintf(" and %d more", more)
		}
		last := when(m.LastWrite)
		if m.Silent {
			last.Text += " (silent)"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: webpage.ManagerName(m.Name), Class: p.classes[m.Name]}, text(strings.Join(m.Operations, ", ")),
			number(m.Objects), number(m.Entries), number(m.Fields), size(m.ManagedFields),
			percent(share(m.ManagedFields, s.ManagedFields)), last, text(kinds),
		}})
	}
	t.Note = moreRows(len(s.Managers))
	return t
}

func moreRows(count int) string {
	if count <= maxRows {
		return ""
	}
	return fmt.Sprintf("the first %d of %d; -o json has all", maxRows, count)
}

func (p *page) kinds(s *Summary) table {
	t := table{Title: "Kinds", Note: moreRows(len(s.Kinds)), Columns: columns("Kind", "#Objects", "#Size",
		"#Managed fields", "#Share", "#Managers", "#Fields", "#Client-side", "#Unowned fields", "#Shared fields")}
	for i := range s.Kinds[:min(len(s.Kinds), maxRows)] {
		k := &s.Kinds[i]
		t.Rows = append(t.Rows, row{Cells: []cell{
			text(k.Name), number(k.Objects), size(k.Size), size(k.ManagedFields), percent(k.Share()), number(k.Managers),
			number(k.Fields), number(k.ClientSide), number(k.Unowned), number(k.Shared),
		}})
	}
	return t
}

func (p *page) examples(s *Summary) table {
	t := table{Title: "Objects", Note: "the worst of each finding", Objects: true, Columns: columns("Object", "Namespace",
		"Found", "#Size", "#Managed fields", "#Entries", "#Unowned fields", "#Shared fields")}
	for i := range s.Examples {
		e := &s.Examples[i]
		found := make([]string, len(e.Findings))
		for j, f := range e.Findings {
			found[j] = string(f)
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: printable.Text(e.Kind + "/" + e.Name), Link: fmt.Sprintf("object-%d", i)}, text(e.Namespace),
			text(strings.Join(found, ", ")), size(e.Size), size(e.ManagedFields), number(e.Entries), number(e.Unowned),
			number(e.Shared),
		}})
	}
	return t
}

func (p *page) gone(s *Summary) table {
	t := table{Title: "Entries of versions that are gone", Note: moreRows(len(s.Gone)), Columns: columns("Kind",
		"Version", "Manager", "Operation", "#Entries", "#Fields")}
	for _, g := range s.Gone[:min(len(s.Gone), maxRows)] {
		t.Rows = append(t.Rows, row{Cells: []cell{
			text(g.Kind), text(g.APIVersion), {Text: webpage.ManagerName(g.Manager), Class: p.classes[g.Manager]},
			text(g.Operation), number(g.Entries), number(g.Fields),
		}})
	}
	return t
}

// object returns an example with its lines.
func (p *page) object(i int, e *Example, r *blame.Report, options *Options) pageObject {
	o := pageObject{
		Anchor: fmt.Sprintf("object-%d", i), Title: printable.Text(e.Kind + "/" + e.Name), Kind: printable.Text(e.Kind),
		Namespace: printable.Text(e.Namespace), Name: printable.Text(e.Name),
		Command: printable.Text(strings.Join(blameCommand(options.Program, options.Scope, e), " ")),
	}
	if r == nil {
		o.More = "Its managed fields can't be shown."
		return o
	}
	for j := range r.Lines {
		l := &r.Lines[j]
		if j == maxLines {
			o.More = fmt.Sprintf("%d more lines: see the command above.", len(r.Lines)-maxLines)
			break
		}
		line := pageLine{Number: l.Number, Text: printable.Text(l.Text)}
		if f := l.Field(); f != nil {
			for _, owner := range f.Owners {
				c := chip{p.classes[owner.Manager], webpage.ManagerName(owner.Manager)}
				if !slices.Contains(line.Chips, c) && len(line.Chips) < blame.MaxOwners {
					line.Chips = append(line.Chips, c)
				}
			}
			line.Unowned = f.State == blame.Unowned && line.Chips == nil
		}
		o.Lines = append(o.Lines, line)
	}
	return o
}

// Bytes returns a number of bytes for people.
func Bytes(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func tiles(s *Summary) []tile {
	silent := 0
	for i := range s.Managers {
		if s.Managers[i].Silent {
			silent++
		}
	}
	gone := 0
	for i := range s.Gone {
		gone += s.Gone[i].Entries
	}
	in := func(c Count) string { return "in " + counted(c.Objects, "object", "objects") }
	return []tile{
		{
			fmt.Sprint(s.Objects), nounOf(s.Objects, "object", "objects"),
			"of " + counted(len(s.Kinds), "kind", "kinds"), false,
		},
		{
			fmt.Sprint(len(s.Managers)), nounOf(len(s.Managers), "manager", "managers"),
			fmt.Sprintf("%d silent", silent), silent > 0,
		},
		{Bytes(s.ManagedFields), "managed fields", fmt.Sprintf("%.0f %% of %s", s.Share()*100, Bytes(s.Size)), false},
		{
			fmt.Sprint(s.ClientSide.Objects), "under client-side apply",
			fmt.Sprintf("%d fields would move", s.ClientSide.Moves), s.ClientSide.Objects > 0,
		},
		{fmt.Sprint(s.Unowned.Fields), "unowned fields", in(s.Unowned), false},
		{fmt.Sprint(s.Shared.Fields), "shared fields", in(s.Shared), false},
		{
			fmt.Sprint(gone), "entries of gone versions",
			"of " + counted(len(s.Gone), "manager and version", "managers and versions"), gone > 0,
		},
		{fmt.Sprint(s.Ancient.Fields), "fields of ancient-changes", in(s.Ancient.Count), s.Ancient.Objects > 0},
	}
}

func nounOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
