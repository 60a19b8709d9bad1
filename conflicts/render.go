package conflicts

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// The limits of a table. A column is as wide as its widest cell, so one long text would make every row long.
const (
	valueWidth = 48   // characters of a value
	ownerWidth = 256  // characters of an owner
	maxRows    = 1000 // conflicts
)

// Style decorates the parts of a rendered report, for example with the color codes of a terminal. Decorations must
// have no width. A nil function does not change its part, and the zero Style is plain text.
type Style struct {
	// Heading is for the first line and the names of the columns, Field for paths,
	// Owner for managers.
	Heading, Field, Owner func(string) string
	// Theirs and Yours are for the values in the object and in the intent.
	Theirs, Yours func(string) string
	// Way is for the names of the ways out.
	Way func(string) string
}

// Render writes c for people: a table of the fields, their owners, both values and times, and the ways out. what
// names the object, such as deployment.apps/nginx; manager is the one that applied.
func (c Conflicts) Render(w io.Writer, what, manager string) error {
	return Report{Object: what, Manager: manager, Conflicts: c}.Render(w, Style{})
}

// Render writes the report for people, as [Conflicts.Render] does, with what others lose by each way out if it is
// known.
func (r Report) Render(w io.Writer, style Style) error {
	c := r.Conflicts
	plural := "conflicts"
	if len(c) == 1 {
		plural = "conflict"
	}
	out := &lines{w: w}
	out.add(decorate(style.Heading, fmt.Sprintf("%s: %d %s for manager %q", r.Object, len(c), plural, r.Manager)))
	rows := [][]string{{"FIELD", "OWNER", "THEIR VALUE", "YOUR VALUE", "SINCE"}}
	for _, conflict := range c[:min(len(c), maxRows)] {
		since := "unknown"
		if conflict.Since != nil {
			since = conflict.Since.UTC().Format(time.RFC3339)
		}
		owner := short(printable.Text(describe(conflict.Owner)), ownerWidth)
		rows = append(rows, []string{
			printable.Text(conflict.Path.Short()),
			fmt.Sprintf("%s (%s)", owner, printable.Text(string(conflict.Owner.Operation))),
			show(conflict.Live), show(conflict.Applied), since,
		})
	}
	out.table(rows, []func(string) string{style.Field, style.Owner, style.Theirs, style.Yours, nil}, style.Heading)
	if len(c) > maxRows {
		out.add(fmt.Sprintf("  and %d more", len(c)-maxRows))
	}
	out.add("Ways out:")
	for _, way := range [...]struct {
		way        Way
		name, text string
	}{
		{Force, "force", "apply again with --force-conflicts: your values, and the fields become yours alone"},
		{GiveUp, "give up", "leave the fields out of your manifest: their values stay, and so does the owner"},
		{Share, "share", "put their values into your manifest: both of you own the fields from then on"},
	} {
		out.add("  " + decorate(style.Way, way.name) + strings.Repeat(" ", 9-len(way.name)) + way.text)
		for _, known := range r.Ways {
			if known.Way == way.way {
				out.losses(known.Losses, style)
			}
		}
	}
	return out.err
}

// lines writes lines until the first error.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) add(line string) {
	if l.err == nil {
		_, l.err = io.WriteString(l.w, line+"\n")
	}
}

// table writes rows of printable cells in aligned columns. The first row is the heading. Widths do not count
// decorations.
func (l *lines) table(rows [][]string, styles []func(string) string, heading func(string) string) {
	widths := make([]int, len(styles))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		line := " "
		for i, cell := range row {
			style := styles[i]
			if n == 0 {
				style = heading
			}
			line += " " + decorate(style, cell)
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+1)
			}
		}
		l.add(line)
	}
}

// maxLost is the number of lost fields of one owner that are listed.
const maxLost = 20

func (l *lines) losses(losses []Loss, style Style) {
	for _, loss := range losses {
		l.add("           " + decorate(style.Owner, short(printable.Text(describe(loss.Owner)), ownerWidth)) + " loses:")
		n := 0
		for p := range loss.Fields.All() {
			if n++; n > maxLost {
				l.add(fmt.Sprintf("             and %d more", loss.Fields.Len()-maxLost))
				break
			}
			l.add("             " + decorate(style.Field, p.Short()))
		}
	}
}

// decorate returns the printable form of text in a style.
func decorate(style func(string) string, text string) string {
	text = printable.Text(text)
	if style == nil {
		return text
	}
	return style(text)
}

// show returns the JSON of a value, shortened for a table.
func show(v any) string { return short(printable.Text(string(appendJSON(nil, v))), valueWidth) }

// short returns s, or its beginning with an ellipsis if it is longer than width characters.
func short(s string, width int) string {
	count, cut := 0, 0 // cut is where the ellipsis goes
	for i := range s {
		if count == width-1 {
			cut = i
		}
		if count++; count > width {
			return s[:cut] + "…"
		}
	}
	return s
}

// enough is a number of bytes that fills the column of a value, whatever its characters are.
const enough = 4 * (valueWidth + 1)

// appendJSON appends the JSON of v, or the beginning of it that is enough for a table. It does not visit the rest of
// large values, and of values that contain themselves.
func appendJSON(b []byte, v any) []byte {
	if len(b) > enough {
		return b
	}
	switch t := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(t)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendScalar(b, k), ':')
			if b = appendJSON(b, t[k]); len(b) > enough {
				return b
			}
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range t {
			if i > 0 {
				b = append(b, ',')
			}
			if b = appendJSON(b, item); len(b) > enough {
				return b
			}
		}
		return append(b, ']')
	}
	return appendScalar(b, v)
}

func appendScalar(b []byte, v any) []byte {
	switch t := v.(type) {
	case string:
		v = t[:min(len(t), enough)]
	case float64, float32:
		if text, err := json.Marshal(t); err == nil {
			return append(b, text...)
		}
		return fmt.Append(b, t) // NaN and the infinities have no JSON
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
	default:
		return fmt.Appendf(b, "%T", v)
	}
	text, _ := json.Marshal(v)
	return append(b, text...)
}
