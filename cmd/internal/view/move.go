package view

import (
	"fmt"
	"io"

	"github.com/fatih/color"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// PreviewMove writes what a move does, and what the next applies will then do.
func PreviewMove(w io.Writer, p Palette, t *place.Target, result *ownership.Result) error {
	fmt.Fprintln(w, p.paint(t.Title(), color.Bold))
	list := func(head string, fields *fieldpath.Set, attribute color.Attribute) {
		if fields.Empty() {
			return
		}
		fmt.Fprintf(w, "  %s\n", head)
		for path := range fields.Leaves().All() {
			fmt.Fprintf(w, "    %s\n", p.paint(path.Short(), attribute))
		}
	}
	for _, change := range result.Changes {
		who := p.paint(describeKey(change.Manager), ofManager(change.Manager.Manager))
		list(who+" gains", change.Gains, color.FgGreen)
		list(who+" loses", change.Loses, color.FgYellow)
	}
	for _, key := range result.Dropped {
		fmt.Fprintf(w, "  %s loses its entry, which can't be decoded\n", p.paint(describeKey(key), ofManager(key.Manager)))
	}
	for _, next := range result.Next {
		who := p.paint(describeKey(next.Manager), ofManager(next.Manager.Manager))
		if next.Err != nil {
			fmt.Fprintf(w, "  what the next apply of %s does can't be told: %s\n", who, printable.Text(next.Err.Error()))
			continue
		}
		list("the next apply of "+who+" deletes, if its manifest stays as it was", next.Deletes, color.FgRed)
		list("the next apply of "+who+" takes back, if its manifest stays as it was", next.Regains, color.FgYellow)
	}
	return nil
}
