package view

import (
	"fmt"
	"io"
	"slices"

	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

// Suggest turns suggestions into commands.
type Suggest struct {
	// Arguments returns the arguments of the command that does what is suggested; nil if there is none. Line returns the
	// line of a command for a shell.
	Arguments func(advice.Suggestion) []string
	Line      func(args []string) string
}

// with returns a suggestion with its arguments.
func (s Suggest) with(one advice.Suggestion) advice.Suggestion {
	if s.Arguments != nil && one.Arguments == nil {
		one.Arguments = s.Arguments(one)
	}
	return one
}

// line returns the line of the command that does what is suggested; empty if there is none.
func (s Suggest) line(one advice.Suggestion) string {
	if args := s.with(one).Arguments; args != nil {
		return s.Line(args)
	}
	return ""
}

// Write writes a suggestion on one line.
func (s Suggest) Write(w io.Writer, one advice.Suggestion) {
	text := printable.Text(one.Why)
	if line := s.line(one); line != "" {
		text += ": " + printable.Text(line)
	}
	fmt.Fprintf(w, "  %s\n", text)
}

// writeLeftovers writes what stays although the intent does not have it, and how to remove it.
func (v PlanView) writeLeftovers(w io.Writer, p *planning.Planned) {
	if len(p.Migration) > 0 {
		fmt.Fprintf(w, "  kubectl apply --server-side takes over what kubectl apply owned, and then also changes:\n")
		v.writeChanges(w, slices.Values(p.Migration))
	}
	for _, l := range p.Leftovers {
		fmt.Fprintf(w, "  %s\n    to allow removal, run: %s\n", printable.Text(l.Why), v.Suggest.line(l))
	}
}

// WriteStringData writes what an apply does through stringData, and the command that lets the next apply remove what
// stays.
func (v PlanView) WriteStringData(w io.Writer, p *planning.Planned) {
	for _, one := range p.StringData() {
		if one.Owner.Manager != "" {
			fmt.Fprintf(w, "  stringData overwrites %s of %s without a conflict: API servers do not check ownership of data\n",
				printable.Text(one.Field.Short()), describeKey(one.Owner))
			continue
		}
		fmt.Fprintf(w, "  %s stays: stringData set it, and no apply of %q removes it\n    to allow removal, run: %s\n",
			printable.Text(one.Field.Short()), p.Desired.Manager, v.Suggest.line(p.LetGo(one)))
	}
}

// stringDataJSON returns the same for programs.
func (v PlanView) stringDataJSON(p *planning.Planned) (out []stringDataJSON) {
	for _, one := range p.StringData() {
		next := stringDataJSON{Field: one.Field.String(), Overwrites: one.Owner.Manager}
		if one.Owner.Manager == "" {
			s := v.Suggest.with(p.LetGo(one))
			next.Suggestion = &s
		}
		out = append(out, next)
	}
	return out
}

// stringDataJSON is a field of data with the owner whose value stringData overwrites, or what lets the next apply
// remove it.
type stringDataJSON struct {
	Field      string             `json:"field"`
	Overwrites string             `json:"overwrites,omitempty"`
	Suggestion *advice.Suggestion `json:"suggestion,omitempty"`
}
