package conflicts

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// valueWidth is how much of a value a table shows, in characters.
const valueWidth = 48

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
	for _, conflict := range c {
		since := "unknown"
		if conflict.Since != nil {
			since = conflict.Since.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(tw, "  %s\t%s (%s)\t%s\t%s\t%s\n", conflict.Path, describe(conflict.Owner),
			conflict.Owner.Operation, show(conflict.Live), show(conflict.Applied), since)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, `Ways out:
  force    apply again with --force-conflicts: your values, and the fields become yours alone
  give up  leave the fields out of your manifest: their values stay, and so does the owner
  share    put their values into your manifest: both of you own the fields from then on
`)
	return err
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if utf8.RuneCount(b) <= valueWidth {
		return string(b)
	}
	return string([]rune(string(b))[:valueWidth-1]) + "…"
}
