package view

import (
	"errors"
	"fmt"
	"io"

	"github.com/fatih/color"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// PreviewMove writes the effects of a move, and of the next applies after it. The function wayAt suggests how to read
// an object at another version; it returns "" if there is no such way.
func PreviewMove(
	w io.Writer, p Palette, t *planning.Target, result *ownership.Result,
	wayAt func(t *planning.Target, version string) string,
) error {
	fmt.Fprintln(w, p.paint(t.Title(), color.Bold))
	list := func(head string, fields *fieldpath.Set, attribute color.Attribute) {
		if fields.IsEmpty() {
			return
		}
		fmt.Fprintf(w, "  %s\n", head)
		for path := range fields.Leaves().All() {
			fmt.Fprintf(w, "    %s\n", p.paint(path.Short(), attribute))
		}
	}
	for _, change := range result.Changes {
		who := p.paint(describeKey(change.Manager), managerColor(change.Manager.Manager))
		list(who+" gains", change.Gains, color.FgGreen)
		list(who+" loses", change.Loses, color.FgYellow)
	}
	list("nobody owns afterwards", result.Unowned, color.FgYellow)
	for _, key := range result.Dropped {
		fmt.Fprintf(w, "  %s loses its entry, which can't be decoded\n",
			p.paint(describeKey(key), managerColor(key.Manager)))
	}
	if left, err := managedfields.Read(result.Object); err == nil && len(left) == 0 && len(result.Changes) > 0 {
		fmt.Fprintf(w, "  no entries are left: with the next apply, %q becomes an owner of all fields (spec rule 1.5), "+
			"so other values conflict with it, and server-side applies remove nothing\n", fieldmanager.BeforeFirstApply)
	}
	for _, next := range result.Next {
		who := p.paint(describeKey(next.Manager), managerColor(next.Manager.Manager))
		var other *fieldmanager.NoConverterError
		if errors.As(next.Err, &other) {
			fmt.Fprintf(w, "  the next apply of %s is not known: its entry is at %s", who, other.Version)
			if way := wayAt(t, other.Version); way != "" {
				fmt.Fprintf(w, "; %s", way)
			}
			fmt.Fprintln(w)
			continue
		}
		if next.Err != nil {
			fmt.Fprintf(w, "  the next apply of %s is not known: %s\n", who, printable.Text(next.Err.Error()))
			continue
		}
		if next.Uncompared != nil && next.Uncompared.Removes {
			fmt.Fprintf(w, "  what the next apply of %s removes is not known, %s\n", who,
				printable.Text(next.Uncompared.Reason()))
		}
		list("the next apply of "+who+" deletes, or sets to the value in its manifest", next.Removed(), color.FgRed)
		for _, other := range next.Others {
			list("with them, "+p.paint(describeKey(other.Manager), managerColor(other.Manager.Manager))+" loses",
				other.Removes, color.FgRed)
		}
		list("the next apply of "+who+" takes back, if its manifest still has it", next.Regains, color.FgYellow)
		list(ownership.KeptTitle("the next apply of "+who, true), next.Defaults, color.FgYellow)
	}
	list("client-side kubectl apply still sets if its manifest changes them, or removes if its manifest lacks them",
		result.ClientSide, color.FgYellow)
	return nil
}
