package conflictreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

// Limits of a table. A column is as wide as its widest cell, so a single long text would widen every row.
const (
	valueWidth = 48   // characters of a value
	ownerWidth = 256  // characters of an owner
	maxRows    = 1000 // conflicts
	maxLost    = 20   // lost fields of one owner
)

// Style decorates the parts of a rendered report, for example with color codes of a terminal. Decorations must not
// change the width of the text. A nil function leaves its part as it is; the zero Style is plain text.
type Style struct {
	// Heading decorates the first line and the names of the columns. Field decorates paths, Owner decorates managers.
	Heading, Field, Owner func(string) string
	// Theirs and Yours decorate the values in the live object and in the intent.
	Theirs, Yours func(string) string
	// Way decorates the names of the ways out.
	Way func(string) string
	// Line returns the command line for a suggestion. If Line is nil, no command lines are printed.
	Line func(advice.Suggestion) string
}

// Render writes the report for people: first a table of the fields with their owners, both values and times, and then
// the ways out. For each way, it lists the fields that other managers lose, as far as these are known.
func (r Report) Render(w io.Writer, style Style) error {
	var b strings.Builder
	count := printable.Counted(len(r.Conflicts), "conflict", "conflicts")
	heading := fmt.Sprintf("%s: %s for manager %q", r.Object, count, r.Manager)
	fmt.Fprintln(&b, printable.Cell{Text: heading, Style: style.Heading})
	b.WriteString(printable.Table("  ", r.rows(style)))
	if more := len(r.Conflicts) - maxRows; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	if len(r.Ways)+len(r.Unavailable)+len(r.Suggestions) > 0 {
		b.WriteString("Ways out:\n")
	}
	for _, way := range slices.Concat(r.Ways, r.Unavailable) {
		name := printable.Cell{Text: fmt.Sprintf("%-8s", way.Name()), Style: style.Way}
		lines := strings.Split(printable.Lines(way.Why), "\n") // a server may refuse a way for several reasons
		fmt.Fprintf(&b, "  %s %s\n", name, strings.Join(lines, "\n             "))
		renderLosses(&b, way.Losses, style)
	}
	for _, s := range r.Suggestions {
		name := printable.Cell{Text: fmt.Sprintf("%-8s", SuggestionName(s)), Style: style.Way}
		fmt.Fprintf(&b, "  %s %s\n", name, printable.Text(s.Why))
		if style.Line != nil && s.Action != nil {
			fmt.Fprintf(&b, "           %s\n", printable.Text(style.Line(s)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wayNames has the names that texts for people use for the ways out.
var wayNames = map[conflicts.Decision]string{
	conflicts.Force: "force", conflicts.GiveUp: "give up", conflicts.Share: "share",
}

// Name returns the name that texts for people use for the way out.
func (w *WayOut) Name() string { return wayNames[w.Decision] }

// SuggestionName returns the name that texts for people use for a suggestion in Suggestions.
func SuggestionName(s advice.Suggestion) string {
	if s.Action == nil {
		return "edit" // the manifest
	}
	return "move"
}

// rows returns the rows of the table of conflicts.
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
		theirs, yours := ConflictTexts(c)
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
