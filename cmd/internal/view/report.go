package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/report"
)

// reportRows is the maximal number of managers, and of kinds, in a table of a report.
const reportRows = 25

// WriteReport writes a report as tables with suggestions.
func WriteReport(env *process.Env, w io.Writer, suggest Suggest, s *report.Summary) error {
	p := PaletteFor(env, w)
	fmt.Fprintf(w, "%s of %s, %s: %s, of which %s (%.0f %%) are managed fields\n",
		printable.Counted(s.Objects, "object", "objects"), printable.Counted(len(s.Kinds), "kind", "kinds"),
		printable.Counted(len(s.Managers), "manager", "managers"), inBytes(s.Size), inBytes(s.ManagedFields), s.Share()*100)
	p.writeManagers(w, s)
	p.writeKinds(w, s)
	p.writeFound(w, s)
	if len(s.Suggestions) > 0 {
		fmt.Fprintf(w, "\n%s\n", p.paint("What to do:", color.Bold))
	}
	for _, suggestion := range s.Suggestions {
		_, err := fmt.Fprintf(w, "  %s\n    %s\n",
			p.paint("# "+suggestion.Why, color.Faint), p.paint(suggest.line(suggestion)))
		if err != nil {
			return err
		}
	}
	return nil
}

// ReportData returns a report, for JSON output.
func ReportData(suggest Suggest, s *report.Summary) any {
	for i, drift := range s.Suggestions {
		s.Suggestions[i] = suggest.with(drift)
	}
	return s
}

// inBytes returns a number of bytes as text with a unit.
func inBytes(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func headings(names ...string) (out []cell) {
	for _, name := range names {
		out = append(out, cell{name, color.Bold})
	}
	return out
}

// rowsOf writes a blank line, the rows, and the number of rows that were left out.
func (p Palette) rowsOf(w io.Writer, rows [][]cell, all int, what string) {
	fmt.Fprintln(w)
	p.table(w, "", rows)
	if left := all - (len(rows) - 1); left > 0 {
		fmt.Fprintf(w, "and %d more %s: see -o json\n", left, what)
	}
}

func (p Palette) writeManagers(w io.Writer, s *report.Summary) {
	rows := [][]cell{headings("MANAGER", "OPERATIONS", "OBJECTS", "KINDS", "FIELDS", "BYTES", "SHARE", "LAST WRITE")}
	for i := range s.Managers[:min(len(s.Managers), reportRows)] {
		m := &s.Managers[i]
		last := "-"
		if m.LastWrite != nil {
			last = duration.HumanDuration(s.Now.Sub(*m.LastWrite))
		}
		paint := color.Attribute(0)
		if m.Silent {
			last, paint = last+", silent", color.FgRed
		}
		share := 0.0
		if s.ManagedFields > 0 {
			share = float64(m.ManagedFields) / float64(s.ManagedFields)
		}
		rows = append(rows, []cell{
			{m.Name, managerColor(m.Name)}, {strings.Join(m.Operations, ","), 0}, {strconv.Itoa(m.Objects), 0},
			{strconv.Itoa(len(m.Kinds)), 0}, {strconv.Itoa(m.Fields), 0}, {inBytes(m.ManagedFields), 0},
			{fmt.Sprintf("%.0f %%", share*100), 0}, {last, paint},
		})
	}
	p.rowsOf(w, rows, len(s.Managers), "managers")
}

func (p Palette) writeKinds(w io.Writer, s *report.Summary) {
	rows := [][]cell{headings("KIND", "OBJECTS", "SIZE", "MANAGED FIELDS", "SHARE", "MANAGERS", "CLIENT-SIDE",
		"UNOWNED", "SHARED")}
	for i := range s.Kinds[:min(len(s.Kinds), reportRows)] {
		k := &s.Kinds[i]
		rows = append(rows, []cell{
			{k.Name, 0}, {strconv.Itoa(k.Objects), 0}, {inBytes(k.Size), 0}, {inBytes(k.ManagedFields), 0},
			{fmt.Sprintf("%.0f %%", k.Share()*100), 0}, {strconv.Itoa(k.Managers), 0}, {strconv.Itoa(k.ClientSide), 0},
			{strconv.Itoa(k.Unowned), 0}, {strconv.Itoa(k.Shared), 0},
		})
	}
	p.rowsOf(w, rows, len(s.Kinds), "kinds")
}

// writeFound writes the findings, if there are any.
func (p Palette) writeFound(w io.Writer, s *report.Summary) {
	rows := [][]cell{headings("FOUND", "OBJECTS", "DETAILS")}
	add := func(name string, objects int, format string, args ...any) {
		if objects > 0 {
			rows = append(rows, []cell{
				{name, color.FgYellow}, {strconv.Itoa(objects), 0}, {fmt.Sprintf(format, args...), 0},
			})
		}
	}
	c := &s.ClientSide
	fields := func(n int) string { return printable.Counted(n, "field", "fields") }
	unknown := ""
	if c.Unknown > 0 {
		unknown = fmt.Sprintf(" (not known for %s)", printable.Counted(c.Unknown, "object", "objects"))
	}
	add("client-side apply", c.Objects, "a migration moves %s; the next apply of the same manifest removes %s%s and "+
		"the annotation; other managers own %s", fields(c.Moves), fields(c.Removed), unknown, fields(c.Others))
	for i, why := range c.Why {
		add("  can't be migrated", c.Failed, "%s", why)
		if i > 0 { // the number is the sum of all reasons
			rows[len(rows)-1][0].text, rows[len(rows)-1][1].text = "", ""
		}
	}
	var versions []string
	for i := range s.Gone {
		version := s.Gone[i].APIVersion + " of " + s.Gone[i].Kind
		if len(versions) < 3 && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	add("gone versions", s.GoneIn, "%s", strings.Join(versions, ", "))
	add("unowned fields", s.Unowned.Objects, "%s; defaults are not counted",
		printable.Counted(s.Unowned.Fields, "field", "fields"))
	add("shared fields", s.Shared.Objects, "%s", printable.Counted(s.Shared.Fields, "field", "fields"))
	since := ""
	if s.Ancient.Oldest != nil {
		since = ", the oldest since " + s.Ancient.Oldest.Format(time.DateOnly)
	}
	add("ancient-changes", s.Ancient.Objects, "%s of managers whose names are lost%s",
		printable.Counted(s.Ancient.Fields, "field", "fields"), since)
	add("Update and Apply", s.Twofold.Objects, "%s that a manager updated, and that its applies do not remove",
		printable.Counted(s.Twofold.Fields, "field", "fields"))
	add("unreadable entries", s.Unreadable, "their fields are not counted")
	if len(rows) > 1 {
		fmt.Fprintln(w)
		p.table(w, "", rows)
	}
}
