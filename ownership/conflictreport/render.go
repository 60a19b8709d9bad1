package conflictreport

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
	for _, way := range [...]struct {
		way        conflicts.Way
		name, text string
	}{
		{conflicts.Force, "force   ",
			"apply again with --force-conflicts: your values, and the fields become yours alone"},
		{conflicts.GiveUp, "give up ",
			"leave the fields out of your manifest: their values stay, and so does the owner"},
		{conflicts.Share, "share   ",
			"put their values into your manifest: both of you own the fields from then on"},
	} {
		fmt.Fprintf(&b, "  %s %s\n", printable.Cell{Text: way.name, Style: style.Way}, way.text)
		for _, known := range r.Ways {
			if known.Way == way.way {
				renderLosses(&b, known.Losses, style)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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
		rows = append(rows, []printable.Cell{
			{Text: c.Path.Short(), Style: style.Field}, {Text: owner, Style: style.Owner},
			{Text: valueText(c.Live), Style: style.Theirs}, {Text: valueText(c.Applied), Style: style.Yours},
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

// valueText returns the JSON of a value, shortened for a table.
func valueText(v any) string {
	left := 4 * valueWidth // bytes that fill the column, whatever the characters are
	v = head(v, &left)
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, v) // NaN and the infinities have no JSON
	}
	return printable.Short(string(text), valueWidth)
}

// head returns the beginning of v, with left bytes or a little more. It does not visit the rest of large values, and
// of values that contain themselves.
func head(v any, left *int) any {
	switch t := v.(type) {
	case string:
		t = t[:min(len(t), max(*left, 0))]
		*left -= len(t)
		return t
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(t)) {
			if *left <= 0 {
				break
			}
			*left -= len(name) + len(`"":,`)
			out[name] = head(t[name], left)
		}
		return out
	case []any:
		out := []any{}
		for i := 0; i < len(t) && *left > 0; i++ {
			*left -= len(`,`)
			out = append(out, head(t[i], left))
		}
		return out
	}
	return v
}
