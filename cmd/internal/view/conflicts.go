package view

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

// ReportOf returns the report about a plan's conflicts, without values of Secrets.
func (v PlanView) ReportOf(ctx context.Context, p *planning.Planned) (conflictreport.Report, error) {
	out, err := p.ConflictReport(ctx)
	out.Conflicts = HideConflicts(out.Conflicts)
	for i := range out.Ways {
		way := &out.Ways[i]
		s := way.Suggestion
		if way.Decision == conflicts.Force && len(p.Overruled) > 0 {
			var set []string
			for _, c := range p.Overruled {
				_, value := changeTexts(c)
				if text := c.Path.Short() + " to " + value; !slices.Contains(set, text) { // a field may have two owners
					set = append(set, text)
				}
			}
			s = advice.Overruled(s, set, len(p.Overruled) == len(p.Conflicts))
		}
		s = advice.WithChanges(s, p.Also[way.Decision])
		s.Action = advice.Resolve{Decision: way.Decision, File: p.Where}
		if _, isTried := p.Also[way.Decision]; p.Untried && !isTried {
			s.Promise.Unblocks = false
		}
		if way.Decision == conflicts.GiveUp && v.isForKubectl(p) {
			s = advice.WithMigration(s, p.Migrated())
		}
		way.Suggestion = v.Suggest.with(s)
		if way.Refused = p.Refused[way.Decision]; way.Refused != "" {
			way.Suggestion, way.Losses = advice.Refused(way.Refused), nil
		}
		if secrets.Is(p.Tree) {
			way.Intent = nil // conflicts --resolve -o yaml prints intents
		}
	}
	if p.MoveRefused {
		out.Suggestions = nil
	}
	out.Suggestions = append(out.Suggestions, p.Ways...)
	for i, s := range out.Suggestions {
		s.Promise.Unblocks = s.Promise.Unblocks && !p.Untried
		out.Suggestions[i] = v.Suggest.with(s.For(p.Objects()))
	}
	return out, err
}

// WriteConflicts writes a report about a plan's conflicts, rules that would decide refused conflicts, and the decisions
// of the plan's policy.
func (v PlanView) WriteConflicts(ctx context.Context, w io.Writer, p *planning.Planned) error {
	report, err := v.ReportOf(ctx, p)
	if err == nil {
		style := v.Palette.Conflicts()
		style.Line = v.Suggest.line
		err = report.Render(w, style)
	}
	if err == nil {
		err = v.writeRules(w, p)
	}
	v.WriteDecided(w, p)
	return err
}

// WriteDecided writes a table of a policy's decisions, with their rules.
func (v PlanView) WriteDecided(w io.Writer, p *planning.Planned) {
	rows := [][]cell{headings("DECISION", "FIELD", "OWNER", "BY")}
	for _, d := range p.Decided {
		rows = append(rows, []cell{
			{string(d.Decision), 0}, {d.Path.Short(), color.FgCyan}, {describeKey(d.Owner), managerColor(d.Owner.Manager)},
			{printable.Text(d.Verdict.String()), 0},
		})
	}
	if len(rows) > 1 {
		v.Palette.table(w, "  ", rows)
	}
}

// writeRules writes rules that users can add to a policy, to decide the conflicts that it refused.
func (v PlanView) writeRules(w io.Writer, p *planning.Planned) error {
	if len(p.Decided) == 0 || p.Outcome != plans.Conflict {
		return nil
	}
	rules, at := []policy.Rule{}, "add it to the policy"
	first := policy.Verdict{Rule: -1}
	for _, d := range p.Decided {
		alone := d.Alone()
		if alone.Decision != conflicts.Refuse {
			continue
		}
		// The first rule that matches a conflict decides, so the new rule must come before the rule that refuses it.
		if alone.Rule >= 0 && (first.Rule < 0 || alone.Rule < first.Rule) {
			first = alone
			first.Reason = ""
			at = "insert it into the policy before " + first.String()
		}
		manager := policy.Quote(d.Owner.Manager)
		n := slices.IndexFunc(rules, func(r policy.Rule) bool { return r.Managers[0] == manager })
		if n < 0 {
			n = len(rules)
			rules = append(rules, policy.Rule{
				Managers: []string{manager}, Kinds: []string{policy.QuoteKind(p.Parent().Kind.GroupKind())},
				Decision: conflicts.GiveUp, Reason: "…",
			})
		}
		rules[n].Fields = append(rules[n].Fields, d.Path.String())
	}
	data, err := printable.Marshal(rules)
	if err == nil {
		text := strings.TrimSuffix("\n"+string(data), "\n")
		fmt.Fprintf(w, "  rule     %s, with the decision force, give-up or share:%s\n", at,
			strings.ReplaceAll(text, "\n", "\n           "))
	}
	return err
}

// DecidedJSON is a policy's decision about a conflict, for JSON output.
type DecidedJSON struct {
	Field    string                    `json:"field"`
	Owner    metav1.ManagedFieldsEntry `json:"owner"`
	Decision conflicts.Decision        `json:"decision"`
	// Rule is the number of the rule that decides, from 1; 0 if no rule matches.
	Rule   int    `json:"rule"`
	Reason string `json:"reason,omitempty"`
	// As is set if the conflict with another manager decides this one, too: it is that manager (see [policy.Verdict]).
	As string `json:"as,omitempty"`
}

// DecidedOf returns a policy's decisions, for JSON output.
func DecidedOf(p *planning.Planned) (out []DecidedJSON) {
	for _, d := range p.Decided {
		out = append(out, DecidedJSON{d.Path.String(), d.Entry(), d.Decision, d.Rule + 1, d.Reason, d.As})
	}
	return out
}
