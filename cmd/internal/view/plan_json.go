package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/ownership/excess"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// planJSON is a plan, for JSON output.
type planJSON struct {
	File      string              `json:"file,omitempty"`
	Object    string              `json:"object"`
	Namespace string              `json:"namespace,omitempty"`
	Manager   string              `json:"manager"`
	Outcome   plans.Outcome       `json:"outcome"`
	Create    bool                `json:"create,omitempty"`
	Changes   []plans.Change      `json:"changes,omitempty"`
	Ownership []ownershipJSON     `json:"ownership,omitempty"`
	Conflicts conflicts.Conflicts `json:"conflicts,omitempty"`
	// Ways, Unavailable and Suggestions are copied from a [conflictreport.Report], without the intents.
	Ways        []conflictreport.WayOut `json:"ways,omitempty"`
	Unavailable []conflictreport.WayOut `json:"unavailable,omitempty"`
	Suggestions []advice.Suggestion     `json:"suggestions,omitempty"`
	// Undecodable suggests to remove the entries that can't be decoded.
	Undecodable []advice.Suggestion `json:"undecodable,omitempty"`
	Decisions   []DecidedJSON       `json:"decisions,omitempty"`
	// Drift are the drifting fields: the manifest lacks them, and only managers without permission own them. Unowned
	// are the unowned fields.
	Drift   []driftJSON      `json:"drift,omitempty"`
	Unowned []excess.Drifted `json:"unowned,omitempty"`
	// Leftovers are suggestions about fields that the manifest lacks, but that stay because Update entries own them.
	Leftovers []advice.Suggestion `json:"leftovers,omitempty"`
	// StringData are the keys in data of a Secret that stringData overwrites although others own them, and the keys
	// that stringData set and no apply removes.
	StringData []stringDataJSON `json:"stringData,omitempty"`
	// Migration are the changes that kubectl apply --server-side makes in a second apply.
	// MigrationUnknown is true if these changes are not known.
	Migration        []plans.Change `json:"migration,omitempty"`
	MigrationUnknown bool           `json:"migrationUnknown,omitempty"`
	// Deletion is set if the object is being deleted.
	Deletion planning.Deletion `json:"deletion,omitempty"`
}

// failedJSON is a document that has no plan, for JSON output.
type failedJSON struct {
	File      string `json:"file,omitempty"`
	Object    string `json:"object,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Manager   string `json:"manager"`
	Outcome   string `json:"outcome"`
	Error     string `json:"error"`
	// Suggestions are actions after which the document may have a plan.
	Suggestions []advice.Suggestion `json:"suggestions,omitempty"`
	Undecodable []advice.Suggestion `json:"undecodable,omitempty"`
}

func (v PlanView) failedData(d *planning.Document) any {
	out := failedJSON{
		File: d.Where, Manager: d.Desired.Manager, Outcome: "failed", Error: d.Err.Error(),
		Suggestions: v.Suggest.All(d.Ways), Undecodable: v.Suggest.All(d.Undecodable),
	}
	if d.Target != nil && d.Name != "" {
		out.Object, out.Namespace = d.Reference(), d.Namespace
	}
	return out
}

// prunedJSON is an object that would be deleted, for JSON output.
type prunedJSON struct {
	Object      string   `json:"object"`
	Namespace   string   `json:"namespace,omitempty"`
	AppliedBy   []string `json:"appliedBy,omitempty"`
	Application string   `json:"application,omitempty"`
	// AlsoWrittenBy are other managers that own fields outside of the object's status.
	AlsoWrittenBy []string `json:"alsoWrittenBy,omitempty"`
}

func prunedData(p *planning.Pruned) prunedJSON {
	by := p.By
	if p.Application != "" {
		by = nil
	}
	return prunedJSON{p.Reference(), p.Namespace, by, p.Application, p.Others()}
}

type ownershipJSON struct {
	Manager     string                            `json:"manager"`
	Operation   metav1.ManagedFieldsOperationType `json:"operation"`
	Subresource string                            `json:"subresource,omitempty"`
	APIVersion  string                            `json:"apiVersion"`
	From        string                            `json:"fromAPIVersion,omitempty"`
	Gains       []string                          `json:"gains,omitempty"`
	Shares      []string                          `json:"shares,omitempty"`
	// Gains are all fields that the manager gains. Shares are the gained fields that other managers own, too, except in
	// entries at versions that only the server can compare. Removes are the fields that the manager's apply removes
	// from the object. Loses are the other fields that the manager loses. Abandons are the fields in Loses that stay in
	// the object without an owner.
	Loses    []string `json:"loses,omitempty"`
	Abandons []string `json:"abandons,omitempty"`
	Removes  []string `json:"removes,omitempty"`
}

// document returns the JSON document for plans.
func (v *Plans) document(items []any) any {
	out := struct {
		Objects []any        `json:"objects"`
		Pruned  []prunedJSON `json:"pruned,omitempty"`
	}{Objects: items}
	for _, p := range v.Pruned {
		out.Pruned = append(out.Pruned, prunedData(&p))
	}
	return out
}

// closeData ends the JSON output. In the format [Lines], it first writes a line for each object that would be deleted.
func (v *Plans) closeData() error {
	for i := 0; v.Format == Lines && i < len(v.Pruned); i++ {
		p := &v.Pruned[i]
		err := v.list.Add(struct {
			prunedJSON
			Outcome string `json:"outcome"`
		}{prunedData(p), "pruned"})
		if err != nil {
			return err
		}
	}
	return v.list.Close()
}

// data returns a plan, for JSON output.
func (v PlanView) data(ctx context.Context, p *planning.Planned) (any, error) {
	out := planJSON{
		File: p.Where, Object: p.Reference(), Namespace: p.Namespace, Manager: p.Desired.Manager, Outcome: p.Outcome,
		Create: p.Desired.Object == nil, Conflicts: HideConflicts(p.Found()), StringData: v.stringDataJSON(p),
		Decisions: DecidedOf(p), Deletion: p.Deletion(),
	}
	out.Drift, out.Unowned = v.Suggest.driftJSON(p.Drift)
	out.Changes = shownChanges(p.Changes())
	if v.migrates(p) {
		out.Migration = shownChanges(slices.Values(p.Migration))
	}
	out.MigrationUnknown = p.IsMigrationUnknown && v.isForKubectl(p)
	out.Leftovers, out.Undecodable = v.Suggest.All(p.Leftovers), v.Suggest.All(p.Undecodable)
	if p.Outcome == plans.Conflict {
		report, err := v.ReportOf(ctx, p)
		if err != nil {
			return nil, err
		}
		out.Ways, out.Unavailable, out.Suggestions = report.Ways, report.Unavailable, report.Suggestions
		for i := range out.Ways {
			out.Ways[i].Intent = nil
		}
	}
	for _, change := range p.Ownership {
		out.Ownership = append(out.Ownership, ownershipJSONOf(p, change))
	}
	return out, nil
}

// shownChanges returns changes without values of Secrets.
func shownChanges(changes iter.Seq[plans.Change]) (out []plans.Change) {
	for change := range changes {
		out = append(out, hideChange(change))
	}
	return out
}

func ownershipJSONOf(p *planning.Planned, c plans.OwnershipChange) ownershipJSON {
	out := ownershipJSON{
		Manager: c.Manager.Manager, Operation: c.Manager.Operation, Subresource: c.Manager.Subresource,
		APIVersion: cmp.Or(c.Version, c.Manager.APIVersion), From: c.From,
		Gains: pathTexts(p.FieldsInParent(c.Gains)), Shares: pathTexts(p.FieldsInParent(c.Shares)),
	}
	removed, others := p.Fate(c)
	out.Removes = pathTexts(removed)
	for _, loss := range others {
		out.Loses = append(out.Loses, loss.Field.String())
		if len(loss.Owners) == 0 && len(loss.MayOwn) == 0 && !loss.Removed && !loss.Unknown {
			out.Abandons = append(out.Abandons, loss.Field.String())
		}
	}
	return out
}

func pathTexts(set *fieldpath.Set) (out []string) {
	for path := range set.All() {
		out = append(out, path.String())
	}
	return out
}

// planCounts are the numbers of plans by outcome. Created objects are not counted as changed.
type planCounts struct {
	Objects   int `json:"objects"`
	Unchanged int `json:"unchanged"`
	Ownership int `json:"ownershipOnly"`
	Changed   int `json:"changed"`
	Created   int `json:"created"`
	Conflicts int `json:"conflicts"`
}

func (c *planCounts) add(p *planning.Planned) {
	c.Objects++
	switch {
	case p.Outcome == plans.Conflict:
		c.Conflicts++
	case p.Desired.Object == nil:
		c.Created++
	case p.Outcome == plans.Unchanged:
		c.Unchanged++
	case p.Outcome == plans.OwnershipOnly:
		c.Ownership++
	default:
		c.Changed++
	}
}

// summaryJSON is a summary of plans, for JSON output.
type summaryJSON struct {
	planCounts
	Failed int `json:"failed"`
	Pruned int `json:"pruned,omitempty"`
	// Migrated is the number of objects that kubectl apply --server-side changes when it takes over fields.
	Migrated int `json:"migrated,omitempty"`
	// Drift is the number of drifting fields.
	Drift int                    `json:"drift,omitempty"`
	Kinds map[string]*planCounts `json:"kinds"`
}

// migrated describes how kubectl apply --server-side would change objects when it takes over client-side applied
// fields. If this command applies the plan, migrated says that the objects keep these fields.
func (v *Plans) migrated() string {
	text := printable.Counted(v.summary.Migrated, "object", "objects")
	if v.Applies {
		return text + " would keep what kubectl apply set and the manifest lacks: only kubectl --server-side removes it"
	}
	return text + " would change when kubectl apply --server-side takes over what kubectl apply owned"
}

// add counts a plan, in the total and for its resource.
func (s *summaryJSON) add(p *planning.Planned) {
	kind := document.Resource(p.Kind.GroupKind())
	if s.Kinds[kind] == nil {
		s.Kinds[kind] = &planCounts{}
	}
	s.planCounts.add(p)
	s.Kinds[kind].add(p)
}

// writeSummary writes the number of objects with each outcome, by kind.
func (v *Plans) writeSummary(w io.Writer) error {
	s := &v.summary
	rows := [][]cell{headings("KIND", "OBJECTS", "UNCHANGED", "OWNERSHIP", "CHANGED", "CREATED", "CONFLICTS")}
	row := func(name string, c *planCounts) {
		cells := []cell{{name, 0}, {strconv.Itoa(c.Objects), 0}}
		for i, n := range []int{c.Unchanged, c.Ownership, c.Changed, c.Created, c.Conflicts} {
			paint := []color.Attribute{color.FgGreen, color.FgCyan, color.FgYellow, color.FgYellow, color.FgRed}[i]
			if n == 0 {
				paint = color.Faint
			}
			cells = append(cells, cell{strconv.Itoa(n), paint})
		}
		rows = append(rows, cells)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		row(kind, s.Kinds[kind])
	}
	if len(s.Kinds) != 1 {
		row("all", &s.planCounts)
	}
	v.Palette.table(w, "", rows)
	if len(v.Pruned) > 0 {
		fmt.Fprintf(w, "%s would be pruned\n", printable.Counted(len(v.Pruned), "object", "objects"))
	}
	if v.Drift {
		if err := v.closeDrift(w); err != nil {
			return err
		}
	}
	if s.Migrated > 0 {
		fmt.Fprintln(w, v.migrated())
	}
	if s.Failed > 0 {
		_, err := fmt.Fprintf(w, "%s could not be planned\n", printable.Counted(s.Failed, "object", "objects"))
		return err
	}
	return nil
}
