package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/ownership/blame"
)

type blameFlags struct {
	objectFlags
	managers      []string
	managedFields bool
	times         bool
	format        string
}

func newBlame(env *process.Env) *cobra.Command {
	var flags blameFlags
	cmd := &cobra.Command{
		Use:   "blame KIND[/NAME] [NAME…] | -f FILE | --live FILE",
		Short: "Show who owns each line of an object",
		Long: `Blame writes objects as YAML. Each line shows the managers that own it, with the
operation, the subresource and the age of their entries in metadata.managedFields.
"(nobody)" marks fields that could be owned but are not. "(unknown)" marks fields
that an entry of another API version may own. For the other marks, see
doc/ownership.md.

Choose objects as with kubectl get. With -f, blame shows the live objects of the
manifests. Blame reads objects from the cluster, from the store of --store, or from
the files of --live, which must contain managed fields. In a store, the kind "all"
means every kind.

-o ndjson prints one line for each object. -o html writes a page with a search and
filters by owner; the page is one file that loads no other files. In all formats
except html, objects are printed as soon as they are read, and not kept in memory.
No format contains values of Secrets.

Exit status: 0 if all objects were shown, 1 on any error, or if the managers of
--manager own no fields.`,
		Example: `  tenure blame deployment/web -n shop
  tenure blame deployments -A -l team=shop -o json
  tenure blame deployment web --manager hpa
  tenure blame deployment web -o html > web.html
  kubectl get deploy web -o yaml --show-managed-fields | tenure blame --live -`,
		RunE: func(_ *cobra.Command, args []string) error { return flags.printReports(args) },
	}
	flags.add(env, cmd)
	cmd.Flags().StringArrayVar(&flags.managers, "manager", nil,
		"only lines that the manager `NAME` owns, and the lines around them; may be given several times")
	cmd.Flags().BoolVar(&flags.managedFields, "show-managed-fields", false, "show metadata.managedFields too")
	cmd.Flags().BoolVar(&flags.times, "time", false, "show the times of writes instead of their ages")
	addFormat(env, cmd, &flags.format, "text", "json", view.Lines, "html") // formats that blaming.print knows
	flags.completeOwners()
	return cmd
}

// blaming prints each report as soon as it is complete, with two exceptions. Reports on a page are printed at the end.
// In the format text, the first report waits for the second, because a single report has another layout.
type blaming struct {
	*blameFlags
	list    view.List
	page    []*blame.Report
	first   *blame.Report
	seen    int // reports, printed or not
	printed int
	known   map[string]bool // managers
	errs    []error
}

// printReports prints who owns which fields of objects.
func (f *blameFlags) printReports(args []string) error {
	b := &blaming{blameFlags: f, known: map[string]bool{}, list: view.List{
		W: f.env.Stdout, Format: f.format, Frame: func(items []any) any { return map[string]any{"objects": items} },
	}}
	bar := view.Bar{}
	if f.format == "html" {
		bar = f.readingBar()
		defer bar.Done()
	}
	return f.eachObject(args, func(_ place.Place, t *place.Target) {
		bar.Step()
		b.add(t)
	}, func(missing error) error {
		bar.Done()
		return errors.Join(append([]error{missing}, append(b.errs, b.close())...)...)
	})
}

// add prints the report of an object. With --manager, it prints the report only if one of the named managers has an
// entry in the object.
func (b *blaming) add(t *place.Target) {
	var now time.Time
	if !b.times {
		now = b.env.Now()
	}
	report, err := blame.New(view.Hide(t.Object), blame.Options{
		Now: now, Type: t.Kind.Typ, TypeAt: t.DeclaredAt, OtherPaths: t.OtherPaths(), Managers: b.managers,
		ManagedFields: b.managedFields,
	})
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", t.Title(), err))
		return
	}
	if len(report.Entries) == 0 && report.Problem == "" && b.live != nil {
		noteUnmanaged(b.env, t, false)
	}
	b.seen++
	isKept := len(b.managers) == 0
	for _, entry := range report.Entries {
		b.known[entry.Manager] = true
		isKept = isKept || slices.Contains(b.managers, entry.Manager)
	}
	if isKept {
		if err := b.print(report); err != nil {
			b.errs = append(b.errs, err)
		}
	}
}

// print prints a report in the format of --output.
func (b *blaming) print(report *blame.Report) error {
	b.printed++
	switch {
	case b.format == "json" || b.format == view.Lines:
		return b.list.Add(report)
	case b.format == "html":
		b.page = append(b.page, report)
		return nil
	case b.printed == 1:
		b.first = report
		return nil
	}
	palette := view.PaletteFor(b.env, b.env.Stdout)
	if b.printed == 2 {
		return blame.Text(b.env.Stdout, palette.Blame(), b.first, report)
	}
	return palette.WriteNextBlame(b.env.Stdout, report)
}

// close prints the reports that add did not print yet. It returns an error if no manager that --manager names has an
// entry.
func (b *blaming) close() error {
	known := slices.Sorted(maps.Keys(b.known))
	switch {
	case b.seen == 0:
		return nil
	case b.printed == 0 && len(known) == 0:
		return fmt.Errorf("--manager: no fields are owned by %q: there are no managers", b.managers)
	case b.printed == 0:
		return fmt.Errorf("--manager: no fields are owned by %q: the managers are %q", b.managers, known)
	case b.format == "json" || b.format == view.Lines:
		return b.list.Close()
	case b.format == "html":
		return view.WriteBlamePage(b.env.Stdout, b.page)
	case b.printed == 1:
		return blame.Text(b.env.Stdout, view.PaletteFor(b.env, b.env.Stdout).Blame(), b.first)
	}
	return nil
}
