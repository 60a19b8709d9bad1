package conflicts

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// What a table shows: the columns are as wide as what is widest in them, so that
// one long text would make every row long.
const (
	valueWidth = 48   // characters of a value
	ownerWidth = 256  // characters of an owner
	maxRows    = 1000 // conflicts
)

// Render writes c for a person: a table with each field, whose it is, both
// values and since when, and the ways out. what names the object, such as
// deployment.apps/nginx; manager is the one that applied.
func (c Conflicts) Render(w io.Writer, what, manager string) error {
	plural := "conflicts"
	if len(c) == 1 {
		plural = "conflict"
	}
	fmt.Fprintf(w, "%s: %d %s for manager %q\n", what, len(c), plural, manager)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "  FIELD\tOWNER\tTHEIR VALUE\tYOUR VALUE\tSINCE")
	for _, conflict := range c[:min(len(c), maxRows)] {
		since := "unknown"
		if conflict.Since != nil {
			since = conflict.Since.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(tw, "  %s\t%s (%s)\t%s\t%s\t%s\n", conflict.Path.Short(), short(describe(conflict.Owner), ownerWidth),
			conflict.Owner.Operation, show(conflict.Live), show(conflict.Applied), since)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(c) > maxRows {
		fmt.Fprintf(w, "  and %d more\n", len(c)-maxRows)
	}
	_, err := fmt.Fprint(w, `Ways out:
  force    apply again with --force-conflicts: your values, and the fields become yours alone
  give up  leave the fields out of your manifest: their values stay, and so does the owner
  share    put their values into your manifest: both of you own the fields from then on
`)
	return err
}

// show returns the JSON of a value as a table shows it.
func show(v any) string { return short(string(appendJSON(nil, v)), valueWidth) }

// short returns s, or its start with an ellipsis when it is longer than width
// characters.
func short(s string, width int) string {
	count, cut := 0, 0 // cut is where the last character that fits with an ellipsis begins
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

// enough is how many bytes fill a value's column, whatever characters they are.
const enough = 4 * (valueWidth + 1)

// appendJSON appends the JSON of v, or at least enough of it for a table: of a
// value that is large, or holds itself, no more is looked at.
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
		return fmt.Append(b, t) // not a number of JSON's
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
	default:
		return fmt.Appendf(b, "%T", v)
	}
	text, _ := json.Marshal(v)
	return append(b, text...)
}
