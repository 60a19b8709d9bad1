package view

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// PlanView prints plans.
type PlanView struct {
	Palette       Palette
	ManagedFields bool // show managed fields in diffs
	Unchanged     bool // list unchanged objects also if there are several
	Drift         bool // print the number of drifting fields
	Applies       bool // this command or Helm applies the plan, not kubectl
	// Pruned are objects that would be deleted.
	Pruned  []planning.Pruned
	Suggest Suggest
}

// reason returns the reason for deleting an object.
func reason(p *planning.Pruned) string {
	text := "applied by " + strings.Join(p.By, " and ")
	if p.Application != "" {
		text = "in " + p.Application
	}
	if others := p.Others(); others != nil {
		text += "; also written by " + strings.Join(others, " and ")
	}
	if takes := p.Takes(); takes != "" {
		text += "; " + takes
	}
	return text
}

// manyFields is the maximal number of gained fields that are listed for a manager. If there are more, only their number
// is printed, because a manager may gain all fields of a large object.
const manyFields = 10

// Plans prints plans one by one. It keeps only data that a page or the program of KUBECTL_EXTERNAL_DIFF needs at the
// end.
type Plans struct {
	PlanView
	Env *process.Env
	// Format is yaml, json, [Lines], diff, html, or "" for text.
	Format string
	// Summarize prints only counts of objects.
	Summarize bool
	// Several is true if there are several documents. Then unchanged ones are only counted, and the last line counts
	// all documents.
	Several bool

	summary   summaryJSON
	drift     DriftCount
	leftovers int
	list      List
	diff      diff
	page      []page.Object
}

// NewPlans returns a printer of plans.
func NewPlans(v Plans) *Plans {
	v.summary.Kinds = map[string]*planCounts{}
	v.list, v.page = List{W: v.Env.Stdout, Format: v.Format}, []page.Object{}
	out := &v
	out.list.Frame = out.document
	return out
}

// Add prints a plan.
func (v *Plans) Add(p *planning.Planned) error {
	ctx, out := v.Env.Context, v.Env.Stdout
	v.summary.add(p)
	drift := DriftView{p.Target, p.Drift}
	v.drift.Add(drift)
	isListed := p.Outcome != plans.Unchanged || v.Unchanged || !v.Several || !drift.IsEmpty() || v.migrates(p) ||
		p.IsMigrationUnknown && v.isForKubectl(p)
	if v.migrates(p) {
		v.summary.Migrated++
	}
	switch {
	case v.Summarize:
	case v.Format == "diff":
		return v.addDiff(p)
	case v.Format == "html" && isListed:
		object, err := v.PageOf(ctx, p, v.Env.Now())
		v.page = append(v.page, object)
		return err
	case v.Format == "html":
	case v.Format != "":
		data, err := v.data(ctx, p)
		if err != nil {
			return err
		}
		return v.list.Add(data)
	case isListed:
		if err := v.writePlan(ctx, out, p); err != nil {
			return err
		}
		v.WriteLeftovers(out, p)
		v.WriteStringData(out, p)
		v.Palette.WriteDrift(out, v.Suggest, drift)
	default:
		v.leftovers += min(len(p.Leftovers)+len(p.StringData()), 1)
	}
	return nil
}

// Fail adds a document that has no plan. The formats text and diff do not show the document, because its error is on
// stderr.
func (v *Plans) Fail(d *planning.Document) error {
	v.summary.Failed++
	v.summary.Objects++
	v.drift.Uncompared++
	switch {
	case v.Summarize || v.Format == "" || v.Format == "diff":
		return nil
	case v.Format == "html":
		v.page = append(v.page, FailedPage(d, d.Err))
		return nil
	}
	return v.list.Add(v.failedData(d))
}

// Close prints the pruned objects. If there are several documents, it also prints a summary, which counts failed
// documents too.
func (v *Plans) Close() error {
	out := v.Env.Stdout
	v.summary.Pruned, v.summary.Drift = len(v.Pruned), v.drift.Fields
	switch {
	case v.Summarize && v.Format != "":
		return Encode(out, v.Format, v.summary)
	case v.Summarize:
		return v.writeSummary(out)
	case v.Format == "diff":
		if v.summary.Migrated > 0 {
			fmt.Fprintf(v.Env.Stderr, "note: %s\n", v.migrated())
		}
		return v.closeDiff()
	case v.Format == "html":
		return v.writePage(out)
	case v.Format != "":
		return v.closeData()
	}
	if v.leftovers > 0 {
		fmt.Fprintf(out, "%s with fields that no apply removes: see --show-unchanged\n",
			printable.Counted(v.leftovers, "unchanged object", "unchanged objects"))
	}
	for _, p := range v.Pruned {
		fmt.Fprintf(out, "%s: %s (%s)\n", v.Palette.paint(p.Title(), color.Bold),
			v.Palette.paint("pruned", color.FgRed), printable.Text(reason(&p)))
	}
	if err := v.closeCounts(out); err != nil || !v.Drift {
		return err
	}
	return v.closeDrift(out)
}

// Migrated returns the number of objects that only kubectl's second apply changes further; none if this command
// applies the plan.
func (v *Plans) Migrated() int {
	if v.Applies {
		return 0
	}
	return v.summary.Migrated
}

// Drifting returns the number of drifting fields, and of objects that have any.
func (v *Plans) Drifting() (fields, objects int) { return v.drift.Fields, v.drift.Objects }

// closeDrift prints the number of drifting fields, and whether the plan has changes besides the drift.
func (v *Plans) closeDrift(out io.Writer) error {
	end := ", besides the changes"
	switch s := &v.summary; {
	case s.Unchanged+s.Failed < s.Objects || len(v.Pruned) > 0 || v.Migrated() > 0:
	case s.Failed > 0:
		end = ""
	default:
		end = "; nothing would change"
	}
	return v.drift.Write(out, end)
}

// closeCounts prints the number of objects with each outcome, if there are several objects.
func (v *Plans) closeCounts(out io.Writer) error {
	if !v.Several && len(v.Pruned) == 0 {
		return nil
	}
	s, pruned := &v.summary, ""
	if len(v.Pruned) > 0 {
		pruned = fmt.Sprintf(" %d pruned,", len(v.Pruned))
	}
	_, err := fmt.Fprintf(out, "%s: %d %s, %d %s, %d %s, %d %s,%s %d failed\n",
		printable.Counted(s.Objects, "object", "objects"), s.Unchanged, plans.Unchanged, s.Ownership, plans.OwnershipOnly,
		s.Changed+s.Created, plans.Changed, s.Conflicts, plans.Conflict, pruned, s.Failed)
	return err
}

// WriteActions writes a table with the action for each object.
func (v PlanView) WriteActions(w io.Writer, all []planning.Planned) {
	rows := [][]cell{headings("ACTION", "OBJECT")}
	actions := map[plans.Outcome]string{
		plans.Changed: "change", plans.OwnershipOnly: "ownership only",
	}
	for _, p := range all {
		text := actions[p.Outcome]
		if p.Desired.Object == nil {
			text = "create"
		}
		rows = append(rows, []cell{{text, outcomeColors[p.Outcome]}, {p.Title(), 0}})
	}
	for _, p := range v.Pruned {
		row := []cell{{"delete", color.FgRed}, {p.Title(), 0}}
		if len(p.By) > 1 {
			row = append(row, cell{printable.Text("applied by " + strings.Join(p.By[1:], " and ") + ", too"), color.FgRed})
		}
		if others := p.Others(); others != nil {
			row = append(row, cell{printable.Text("also written by " + strings.Join(others, " and ")), color.FgRed})
		}
		if takes := p.Takes(); takes != "" {
			row = append(row, cell{takes, color.FgRed})
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		v.Palette.table(w, "", rows)
	}
}

var outcomeColors = map[plans.Outcome]color.Attribute{
	plans.Unchanged: color.FgGreen, plans.OwnershipOnly: color.FgCyan,
	plans.Changed: color.FgYellow, plans.Conflict: color.FgRed,
}

// outcomeOf returns the outcome of a plan, or created for an object that does not exist yet.
func outcomeOf(p *planning.Planned) string {
	if p.Desired.Object == nil {
		return "created"
	}
	return p.Outcome.String()
}

// writePlan writes a plan as text.
func (v PlanView) writePlan(ctx context.Context, w io.Writer, p *planning.Planned) error {
	if p.Outcome == plans.Conflict {
		return v.WriteConflicts(ctx, w, p)
	}
	fmt.Fprintf(w, "%s: %s\n", v.Palette.paint(p.Title(), color.Bold),
		v.Palette.paint(outcomeOf(p), outcomeColors[p.Outcome]))
	v.WriteDecided(w, p)
	// Do not list the fields of a new object: all of them are new, and its creator owns them.
	if p.Desired.Object != nil {
		v.WriteEffects(w, *p)
	}
	return nil
}

var changeColors = map[plans.ChangeKind]color.Attribute{
	plans.Added: color.FgGreen, plans.Removed: color.FgRed,
	plans.Modified: color.FgYellow, plans.Reordered: color.FgYellow,
}

// DeletionNote returns a note about a plan whose object is being deleted; empty for other plans.
func DeletionNote(p *planning.Planned) string {
	switch p.Deletion() {
	case planning.Continues:
		return "is being deleted"
	case planning.Ends:
		return "is being deleted; the apply removes its last finalizer, which ends the deletion"
	}
	return ""
}

// WriteEffects writes tables of changed fields, and of fields that managers gain and lose.
func (v PlanView) WriteEffects(w io.Writer, p planning.Planned) {
	v.writeChanges(w, p.Changes())
	v.writeOwnership(w, p)
}

// writeChanges writes a table of changed fields.
func (v PlanView) writeChanges(w io.Writer, changes iter.Seq[plans.Change]) {
	rows := [][]cell{headings("CHANGE", "FIELD", "BEFORE", "AFTER")}
	for change := range changes {
		row := []cell{{string(change.Kind), changeColors[change.Kind]}, {change.Path.Short(), color.FgCyan}}
		before, after := changeTexts(change)
		switch change.Kind {
		case plans.Added:
			row = append(row, cell{}, cell{after, color.FgGreen})
		case plans.Removed:
			row = append(row, cell{before, color.FgRed})
		case plans.Modified:
			row = append(row, cell{before, color.FgRed}, cell{after, color.FgGreen})
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		v.Palette.table(w, "  ", rows)
	}
}

// writeOwnership writes a table of the fields that managers gain and lose.
func (v PlanView) writeOwnership(w io.Writer, p planning.Planned) {
	rows := [][]cell{headings("MANAGER", "OWNERSHIP", "FIELD")}
	for _, change := range p.Ownership {
		who := cell{describeKey(change.Manager), managerColor(change.Manager.Manager)}
		if change.From != "" {
			rows = append(rows, []cell{who, {"moves", 0}, {change.From + " -> " + change.Version, color.Faint}})
		}
		removed, others := p.Fate(change)
		for _, part := range []struct {
			word     string
			fields   *fieldpath.Set
			listsAll bool
		}{
			{"gains", change.Gains.Difference(change.Shares), false}, {"shares", change.Shares, false},
			{"removes", removed, true},
		} {
			leaves := p.FieldsInParent(part.fields.Leaves())
			if n := leaves.Len(); n > manyFields && !part.listsAll {
				rows = append(rows, []cell{who, {part.word, 0}, {printable.Counted(n, "field", "fields"), color.Faint}})
				continue
			}
			for path := range leaves.All() {
				rows = append(rows, []cell{who, {part.word, 0}, {path.Short(), color.FgCyan}})
			}
		}
		for _, loss := range others {
			row := []cell{who, {"loses", 0}, {loss.Field.Short(), color.FgCyan}}
			if fate := fateOf(p, loss); fate != "" {
				rows[0] = headings("MANAGER", "OWNERSHIP", "FIELD", "VALUE")
				row = append(row, cell{fate, color.Faint})
			}
			rows = append(rows, row)
		}
	}
	for _, e := range p.MayShare() {
		key := managedfields.KeyOf(e.Manager, e.Operation, e.APIVersion, e.Subresource)
		who := cell{describeKey(key), managerColor(e.Manager)}
		rows = append(rows, []cell{who, {"may share", 0}, {"gained fields, at " + e.APIVersion, color.Faint}})
	}
	if len(rows) == 1 && p.Outcome == plans.OwnershipOnly {
		rows = append(rows, containerRows(p)...)
	}
	if len(rows) > 1 {
		v.Palette.table(w, "  ", rows)
	}
}

// containerRows returns rows for a plan in which no manager gains or loses fields. In such a plan, only the ownership
// of maps, lists and items themselves changes, or only the order, times or versions of entries.
func containerRows(p planning.Planned) (rows [][]cell) {
	for _, change := range p.Ownership {
		who := cell{describeKey(change.Manager), managerColor(change.Manager.Manager)}
		for path := range change.Loses.All() {
			text := path.Short() + " itself, but not the fields in it"
			rows = append(rows, []cell{who, {"loses", 0}, {text, color.FgCyan}})
		}
	}
	if rows == nil {
		rows = [][]cell{{{"", 0}, {"", 0}, {"no fields: only the order, times or versions of entries change", color.Faint}}}
	}
	return rows
}

// fateOf describes what happens to the value of a field that a manager loses and does not remove.
func fateOf(p planning.Planned, loss planning.Loss) string {
	isSetter := func(k managedfields.Key) bool {
		return k.Manager == p.Desired.Manager && k.Operation == metav1.ManagedFieldsOperationApply
	}
	switch {
	case loss.Absent:
		return ""
	case loss.Removed:
		return "is removed by this apply"
	case loss.Unknown:
		return "is not known without the server"
	case len(loss.Owners) == 0 && len(loss.MayOwn) > 0:
		e := loss.MayOwn[0]
		return fmt.Sprintf("stays; %s may own it, at %s", describeKey(e.Key), e.APIVersion)
	case len(loss.Owners) == 0 && loss.Around:
		return "stays without an owner: an apply removes it only with the list item or map around it"
	case len(loss.Owners) == 0:
		return "stays without an owner: no apply removes it"
	case loss.Changes && slices.ContainsFunc(loss.Owners, isSetter):
		return "is set by " + describeKey(loss.Owners[slices.IndexFunc(loss.Owners, isSetter)])
	case loss.Changes:
		return "is changed by this apply, and stays with " + describeKey(loss.Owners[0])
	}
	return "stays with " + describeKey(loss.Owners[0])
}

// describeKey returns the name of an entry.
func describeKey(k managedfields.Key) string { return printable.Text(advice.Owner(k)) }
