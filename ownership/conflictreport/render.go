package conflictreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// The limits of a table. A column is as wide as its widest cell, so one long text would make every row long.
const (
	valueWidth = 48   // characters of a value
	ownerWidth = 256  // characters of an owner
	maxRows    = 1000 // conflicts
	maxLost    = 20   // lost fields of one owner
)

// Style decorates the parts of a rendered report, for example with the color codes of a terminal. Decorations must
// have no width. A nil function does not change its part, and the zero Style is plain text.
type Style struct {
	// Heading is for the first line and the names of the columns, Field for paths, Owner for managers.
	Heading, Field, Owner func(string) string
	// Theirs and Yours are for the values in the object and in the intent.
	Theirs, Yours func(string) string
	// Way is for the names of the ways out.
	Way func(string) string
}

// Render writes the report for people: a table of the fields, their owners, both values and times, and the ways out,
// with what others lose by each if it is known.
func (r Report) Render(w io.Writer, style Style) error {
	var b strings.Builder
	count := printable.Counted(len(r.Conflicts), "conflict", "conflicts")
	heading := fmt.Sprintf("%s: %s for manager %q", r.Object, count, r.Manager)
	fmt.Fprintln(&b, printable.Cell{Text: heading, Style: style.Heading})
	b.WriteString(printable.Table("  ", r.rows(style)))
	if more := len(r.Conflicts) - maxRows; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	b.WriteString("Ways out:\n")
	for _, way := range r.WayTexts() {
		name := printable.Cell{Text: fmt.Sprintf("%-8s", way.Name), Style: style.Way}
		fmt.Fprintf(&b, "  %s %s\n", name, way.Text)
		for _, known := range r.Ways {
			if known.Way == way.Way {
				renderLosses(&b, known.Losses, style)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WayText says what a way out does, for people.
type WayText struct {
	Way        conflicts.Way
	Name, Text string
}

// WayTexts returns the ways out that there are for the conflicts of the report.
func (r Report) WayTexts() []WayText {
	force, share := "your values, and the fields become yours alone", "both of you own the fields from then on"
	absent := 0
	if !slices.ContainsFunc(r.Conflicts, func(c conflicts.Conflict) bool { return !c.Equal }) {
		force = "no value changes, and the fields become yours alone"
	}
	for _, c := range r.Conflicts {
		if c.Live == nil {
			absent++
		}
	}
	if absent > 0 {
		share = "both of you own what is there; you leave out what is absent"
	}
	out := []WayText{
		{conflicts.Force, "force", "apply again with --force-conflicts: " + force},
		{conflicts.GiveUp, "give up", "leave the fields out of your manifest: their values stay, and so does the owner"},
		{conflicts.Share, "share", "put their values into your manifest: " + share},
	}
	if absent == len(r.Conflicts) {
		return out[:2] // there is nothing to share
	}
	return out
}

// rows returns the table of the conflicts.
func (r Report) rows(style Style) [][]printable.Cell {
	var heading []printable.Cell
	for _, name := range []string{"FIELD", "OWNER", "THEIR VALUE", "YOUR VALUE", "SINCE"} {
		heading = append(heading, printable.Cell{Text: name, Style: style.Heading})
	}
	rows := [][]printable.Cell{heading}
	for _, c := range r.Conflicts[:min(len(r.Conflicts), maxRows)] {
		since := "unknown"
		if c.Since != nil {
			since = c.Since.UTC().Format(time.RFC3339)
		}
		owner := fmt.Sprintf("%s (%s)", printable.Short(conflicts.Describe(c.Entry()), ownerWidth), c.Owner.Operation)
		theirs, yours := Texts(c.Live, c.Applied)
		if c.Equal {
			yours += " (same)"
		}
		rows = append(rows, []printable.Cell{
			{Text: c.Path.Short(), Style: style.Field}, {Text: owner, Style: style.Owner},
			{Text: theirs, Style: style.Theirs}, {Text: yours, Style: style.Yours},
			{Text: since},
		})
	}
	return rows
}

func renderLosses(b *strings.Builder, losses []Loss, style Style) {
	for _, loss := range losses {
		owner := printable.Short(conflicts.Describe(loss.Owner), ownerWidth)
		fmt.Fprintf(b, "           %s loses:\n", printable.Cell{Text: owner, Style: style.Owner})
		for _, p := range loss.Fields[:min(len(loss.Fields), maxLost)] {
			fmt.Fprintf(b, "             %s\n", printable.Cell{Text: p.Short(), Style: style.Field})
		}
		if more := len(loss.Fields) - maxLost; more > 0 {
			fmt.Fprintf(b, "             and %d more\n", more)
		}
	}
}
