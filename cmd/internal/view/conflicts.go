package view

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

// Report returns the report of the conflicts of a plan, without the values of Secrets.
func (p *Planned) Report(ctx context.Context) (conflictreport.Report, error) {
	out, err := conflictreport.New(ctx, p.Fields, place.Wrap(p.Desired.Object), place.Wrap(p.Tree), p.Title(), p.Options)
	out.Conflicts = HideConflicts(out.Conflicts)
	for i := range out.Ways {
		if secrets.Is(p.Tree) {
			out.Ways[i].Intent = nil // conflicts --resolve -o yaml prints it
		}
	}
	return out, err
}

// WriteConflicts writes a report of the conflicts of a plan, and what a policy decided about the others.
func (v PlanView) WriteConflicts(ctx context.Context, w io.Writer, p *Planned) error {
	report, err := p.Report(ctx)
	if err == nil {
		err = report.Render(w, v.Palette.Conflicts())
	}
	if err == nil {
		err = v.writeRules(w, p)
	}
	v.WriteDecided(w, p)
	return err
}

// Decided is a conflict with the verdict of a policy.
type Decided struct {
	conflicts.Conflict
	policy.Verdict
}

// Decide decides the conflicts of a plan by a policy; nil leaves them. So it does with the values of others that
// stringData of a Secret would overwrite, which are no conflicts for a server. If none is refused, intent and plan are
// those that follow, as the server answers them, where there is one. Else only the refused ones are conflicts of the
// plan.
func (p *Planned) Decide(ctx context.Context, at place.Place, by *policy.Policy, subresource string) error {
	if by == nil || p.Plan == nil {
		return nil
	}
	found := p.Conflicts
	all := append(slices.Clone(found), p.overwritten()...)
	var refused conflicts.Conflicts
	for i, v := range by.Decide(p.Metadata(), all) {
		p.Decided = append(p.Decided, Decided{all[i], v})
		if _, ok := v.Decision.Way(); !ok {
			refused = append(refused, all[i])
		}
	}
	if len(refused) > 0 {
		plan := *p.Plan
		plan.Conflicts, plan.Outcome = refused, plans.Conflict
		p.Plan, p.Options.Found = &plan, refused
	}
	if len(refused) > 0 || len(all) == 0 {
		return nil
	}
	p.leaveStringData(p.Decided[len(found):])
	shown, err := p.resolve(ctx, p.Desired)
	stored := shown
	if with := p.Stored(); err == nil && with != p.Desired {
		stored, err = p.resolve(ctx, with)
	}
	if err != nil {
		return err
	}
	p.Desired, p.Plan = p.With(stored.Intent.Object), shown.Plan
	p.Options.Force, p.Options.Found = shown.Force, nil
	if isServed, canDryRun := p.IsServed(); isServed && canDryRun && !p.Moved && p.Outcome != plans.Unchanged {
		_, err = p.Ask(ctx, at, subresource)
	}
	return err
}

// overwritten returns the values of others that stringData would overwrite, as conflicts.
func (p *Planned) overwritten() (out conflicts.Conflicts) {
	given, _ := p.Tree["stringData"].(map[string]any)
	for _, one := range p.StringData() {
		if one.Owner.Manager == "" {
			continue
		}
		name, _ := one.Field[len(one.Field)-1].Field()
		live, _ := p.Kind.Typ.Get(p.Desired.Object, one.Field)
		out = append(out, conflicts.Conflict{
			Path: one.Field, Owner: one.Owner, APIVersion: p.Kind.GroupVersion().String(), Live: live, Applied: given[name],
		})
	}
	return out
}

// leaveStringData leaves out of stringData what is given up, and of what is shared it puts the live value into data.
func (p *Planned) leaveStringData(decided []Decided) {
	intent := runtime.DeepCopyJSON(p.Stored().Tree)
	given, _ := intent["stringData"].(map[string]any)
	stored, _ := p.Stored().Object["data"].(map[string]any)
	for _, d := range decided {
		name, _ := d.Path[len(d.Path)-1].Field()
		if d.Decision == policy.Force {
			continue
		}
		delete(given, name)
		if d.Decision == policy.Share {
			data, _ := intent["data"].(map[string]any)
			if data == nil {
				data = map[string]any{}
			}
			data[name], intent["data"] = stored[name], data
		}
	}
	if len(decided) > 0 {
		p.Desired = p.With(intent)
	}
}

// Metadata returns the metadata of the live object, for a policy.
func (p *Planned) Metadata() *metav1.PartialObjectMetadata {
	live := &unstructured.Unstructured{Object: p.Desired.Object}
	out := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: live.GetLabels()},
	}
	out.SetGroupVersionKind(p.Kind.GroupVersionKind)
	return out
}

// resolve returns what follows from the verdicts for an intent: that of the plan, or the same with the values of a
// Secret.
func (p *Planned) resolve(ctx context.Context, w *place.Desired) (*plans.Resolution, error) {
	choose := func(c conflicts.Conflict) (way conflicts.Way) {
		for _, d := range p.Decided {
			if d.Owner == c.Owner && d.Path.Equal(c.Path) {
				way, _ = d.Decision.Way()
			}
		}
		return way
	}
	return plans.Resolve(ctx, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), choose, p.Options)
}

// WriteDecided writes a table of what a policy decided, and by which rule.
func (v PlanView) WriteDecided(w io.Writer, p *Planned) {
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

// writeRules writes the rules that would decide the conflicts that a policy refused.
func (v PlanView) writeRules(w io.Writer, p *Planned) error {
	if len(p.Decided) == 0 || p.Outcome != plans.Conflict {
		return nil
	}
	rules := []policy.Rule{}
	for _, c := range p.Conflicts {
		n := slices.IndexFunc(rules, func(r policy.Rule) bool { return r.Managers[0] == c.Owner.Manager })
		if n < 0 {
			n = len(rules)
			rules = append(rules, policy.Rule{
				Managers: []string{c.Owner.Manager}, Kinds: []string{p.Kind.Kind}, Decision: policy.GiveUp, Reason: "…",
			})
		}
		rules[n].Fields = append(rules[n].Fields, c.Path.String())
	}
	data, err := printable.Marshal(rules)
	if err == nil {
		text := strings.TrimSuffix("\n"+string(data), "\n")
		fmt.Fprintf(w, "  rule     add it to the policy, with the decision force, giveUp or share:%s\n",
			strings.ReplaceAll(text, "\n", "\n           "))
	}
	return err
}

// DecidedJSON is what a policy decided about a conflict, for programs.
type DecidedJSON struct {
	Field    string                    `json:"field"`
	Owner    metav1.ManagedFieldsEntry `json:"owner"`
	Decision policy.Decision           `json:"decision"`
	// Rule is the number of the rule, from 1 on; 0 if none matches.
	Rule   int    `json:"rule"`
	Reason string `json:"reason,omitempty"`
}

// DecidedJSON returns what a policy decided, for programs.
func (p *Planned) DecidedJSON() (out []DecidedJSON) {
	for _, d := range p.Decided {
		out = append(out, DecidedJSON{d.Path.String(), d.Entry(), d.Decision, d.Rule + 1, d.Reason})
	}
	return out
}
