package view

import (
	"fmt"
	"io"
	"slices"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

// Suggest turns suggestions into command lines.
type Suggest struct {
	// Arguments returns the arguments of the command that carries out a suggestion; nil if no command does. Line
	// returns a command with these arguments as a line for a shell.
	Arguments func(advice.Suggestion) []string
	Line      func(args []string) string
}

// with returns a suggestion with its Arguments set.
func (s Suggest) with(suggestion advice.Suggestion) advice.Suggestion {
	if s.Arguments != nil && suggestion.Arguments == nil {
		suggestion.Arguments = s.Arguments(suggestion)
	}
	return suggestion
}

// All returns suggestions with their Arguments set.
func (s Suggest) All(suggestions []advice.Suggestion) (out []advice.Suggestion) {
	for _, suggestion := range suggestions {
		out = append(out, s.with(suggestion))
	}
	return out
}

// line returns the command line for a suggestion; empty if there is none.
func (s Suggest) line(suggestion advice.Suggestion) string {
	if args := s.with(suggestion).Arguments; args != nil {
		return s.Line(args)
	}
	return ""
}

// Write writes a suggestion on one line.
func (s Suggest) Write(w io.Writer, suggestion advice.Suggestion) {
	text := printable.Text(suggestion.Why)
	if line := s.line(suggestion); line != "" {
		text += ": " + printable.Text(line)
	}
	fmt.Fprintf(w, "  %s\n", text)
}

// migrates reports whether kubectl may apply the plan, and then makes further changes. If this command applies the
// plan, it shows these changes only for the default manager of kubectl, whose plans show what kubectl does.
func (v PlanView) migrates(p *planning.Planned) bool {
	return len(p.Migration) > 0 && v.isForKubectl(p)
}

func (v PlanView) isForKubectl(p *planning.Planned) bool {
	return !v.Applies && p.MayMigrate() || p.Desired.Manager == planning.KubectlManager
}

// WriteLeftovers writes the fields that stay although the intent lacks them, and how to remove them.
func (v PlanView) WriteLeftovers(w io.Writer, p *planning.Planned) {
	kubectl, then := "kubectl apply --server-side", "then"
	if p.Desired.Manager != planning.KubectlManager {
		kubectl = "if kubectl applies this, it"
	}
	if p.Outcome == plans.Conflict {
		then = "after any way out"
	}
	switch {
	case p.IsMigrationUnknown && !v.Applies:
		fmt.Fprintf(w, "  %s takes over what kubectl apply owned; what else it %s changes is not known,\n"+
			"  because entries of other versions can't be compared here, or the server has not answered\n", kubectl, then)
	case !v.migrates(p):
	case v.Applies:
		v.Suggest.Write(w, p.TakeOver())
	default:
		fmt.Fprintf(w, "  %s takes over what kubectl apply owned, and %s also changes:\n", kubectl, then)
		v.writeChanges(w, slices.Values(p.Migration))
	}
	for _, l := range p.Leftovers {
		fmt.Fprintf(w, "  %s\n", printable.Text(l.Why))
		if len(l.Fields) > advice.MaxNamed {
			fmt.Fprintln(w, "    plan -o json lists all fields")
		}
		if line := v.Suggest.line(l); line != "" {
			fmt.Fprintf(w, "    to allow removal, run: %s\n", line)
		}
	}
}

// WriteStringData writes which fields of data the stringData of an apply overwrites without a conflict. It also writes
// which fields stay, and the command that allows the next apply to remove them.
func (v PlanView) WriteStringData(w io.Writer, p *planning.Planned) {
	for _, field := range p.StringData() {
		if field.Owner.Manager != "" {
			fmt.Fprintf(w, "  stringData overwrites %s of %s without a conflict: API servers do not check ownership of data\n",
				printable.Text(field.Field.Short()), describeKey(field.Owner))
			continue
		}
		fmt.Fprintf(w, "  %s stays: stringData set it, and no apply of %q removes it\n    to allow removal, run: %s\n",
			printable.Text(field.Field.Short()), p.Desired.Manager, v.Suggest.line(p.LetGo(field)))
	}
}

// stringDataJSON returns the effects of stringData, for JSON output.
func (v PlanView) stringDataJSON(p *planning.Planned) (out []stringDataJSON) {
	for _, field := range p.StringData() {
		next := stringDataJSON{Field: field.Field.String(), Overwrites: field.Owner.Manager}
		if field.Owner.Manager == "" {
			s := v.Suggest.with(p.LetGo(field))
			next.Suggestion = &s
		}
		out = append(out, next)
	}
	return out
}

// stringDataJSON is a field of data. It has either the owner whose value stringData overwrites, or a suggestion of how
// to let the next apply remove the field.
type stringDataJSON struct {
	Field      string             `json:"field"`
	Overwrites string             `json:"overwrites,omitempty"`
	Suggestion *advice.Suggestion `json:"suggestion,omitempty"`
}
