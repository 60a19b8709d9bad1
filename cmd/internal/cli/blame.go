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
		Long: `Blame writes objects as YAML, and before each line all managers that own it, how
they came to it, through which subresource, and how long ago. "(nobody)" marks what
could be owned and is not; doc/ownership.md says how to read the rest.

The objects are chosen as with kubectl get, or by manifests with -f, whose live
objects are shown. They are those of the cluster; with --store, those of a store,
where the kind "all" stands for every kind; with --live, those of files, with their
managed fields.

-o html writes a page to look at or to keep, one file that loads nothing, with a
search and filters by owner. Values of Secrets are in none of the formats.

Exit status: 0 when all objects could be shown, 1 on any error, also when no manager
of --manager owns anything.`,
		Example: `  tenure blame deployment/web -n shop
  tenure blame deployments -A -l team=shop -o json
  tenure blame deployment web --manager hpa
  tenure blame deployment web -o html > web.html
  kubectl get deploy web -o yaml --show-managed-fields | tenure blame --live -`,
		RunE: func(_ *cobra.Command, args []string) error { return flags.withObjects(args, flags.printReports) },
	}
	flags.add(env, cmd)
	cmd.Flags().StringArrayVar(&flags.managers, "manager", nil,
		"only lines of the manager `NAME`, and what these are in; may be given several times")
	cmd.Flags().BoolVar(&flags.managedFields, "show-managed-fields", false, "show metadata.managedFields too")
	cmd.Flags().BoolVar(&flags.times, "time", false, "show when, not how long ago")
	addFormat(env, cmd, &flags.format, "text", "json", "html") // what writeReports writes
	flags.completeOwners()
	return cmd
}

// selectReports returns the reports of objects with an entry of one of --manager. No such object is an error.
func (f *blameFlags) selectReports(reports []*blame.Report) ([]*blame.Report, error) {
	if len(f.managers) == 0 || len(reports) == 0 {
		return reports, nil
	}
	known := map[string]bool{}
	var kept []*blame.Report
	for _, report := range reports {
		isKept := false
		for _, entry := range report.Entries {
			known[entry.Manager] = true
			isKept = isKept || slices.Contains(f.managers, entry.Manager)
		}
		if isKept {
			kept = append(kept, report)
		}
	}
	switch {
	case len(kept) > 0:
		return kept, nil
	case len(known) == 0:
		return nil, fmt.Errorf("--manager: %q own nothing: there are no managers", f.managers)
	}
	return nil, fmt.Errorf("--manager: %q own nothing: the managers are %q", f.managers, slices.Sorted(maps.Keys(known)))
}

// printReports prints who owns what in objects.
func (f *blameFlags) printReports(_ place.Place, targets []*place.Target, missing error) error {
	var now time.Time
	if !f.times {
		now = f.env.Now()
	}
	reports := make([]*blame.Report, 0, len(targets))
	for _, t := range targets {
		report, err := blame.New(view.Hide(t.Object), blame.Options{
			Now: now, Type: t.Kind.Typ, Managers: f.managers, ManagedFields: f.managedFields,
		})
		if err != nil {
			missing = errors.Join(missing, fmt.Errorf("%s: %w", t.Title(), err))
			continue
		}
		if len(report.Entries) == 0 && report.Problem == "" && f.live != nil {
			noteUnmanaged(f.env, t)
		}
		reports = append(reports, report)
	}
	reports, err := f.selectReports(reports)
	missing = errors.Join(missing, err)
	if len(reports) == 0 {
		return missing
	}
	return errors.Join(missing, f.writeReports(reports))
}

// writeReports writes the reports in the format of --output.
func (f *blameFlags) writeReports(reports []*blame.Report) error {
	switch f.format {
	case "json":
		return view.Encode(f.env.Stdout, f.format, map[string]any{"objects": reports})
	case "html":
		return view.WriteBlamePage(f.env.Stdout, reports)
	}
	return blame.Text(f.env.Stdout, view.PaletteFor(f.env, f.env.Stdout).Blame(), reports...)
}
