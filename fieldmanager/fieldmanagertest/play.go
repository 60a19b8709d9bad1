package fieldmanagertest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/txtar"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed"
)

// Source is a scenario in its text form, without its expected results.
type Source struct {
	// About is the comment without the lines for programs; Rules are the rules that those lines list.
	About string
	Rules []string
	// Steps are the steps of the scenario, in order.
	Steps []SourceStep
}

// SourceStep is a step as it is written: its name, such as "apply bob force", and its body.
type SourceStep struct {
	Name string `json:"name"`
	Body string `json:"body"`
}

// ParseSource returns the steps of a scenario. The error has the name of the step that can't be parsed.
func ParseSource(text []byte) (*Source, error) {
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := &Source{About: parsed.About, Rules: parsed.Rules}
	for _, st := range parsed.script {
		for _, written := range append([]*step{st}, st.grouped...) {
			s.Steps = append(s.Steps, SourceStep{written.name, string(written.body)})
		}
	}
	return s, nil
}

// Played is the result of a step.
type Played struct {
	// Word is the first word of the step: apply, schema and so on.
	Word string
	// Before is a copy of the object before the step; nil if there was none. Result has the object after the step.
	Before *unstructured.Unstructured
	// Type is the type of the object after the step; nil if it is not known yet.
	Type *typed.Type
	// Result is the result of a write. For other steps, it has the object, and the error if the step failed.
	Result
	// Plan is the plan of an apply, if it could be planned. Do not change its values.
	Plan *plans.Plan
	// Ways are the ways out of the conflicts of an apply.
	Ways []conflictreport.WayOut
	// Intent is the result of an extract step.
	Intent map[string]any
	// Orders is the report of an interleave step.
	Orders *Interleaving
	// IsGrouped means that the step is a write of the preceding interleave step, and has no result of its own.
	IsGrouped bool
}

// Play runs steps without expected results, and returns the result of each. A step that fails does not change the
// object, and the following steps still run. Writes after an interleave step belong to it, up to the next step of
// another kind.
func Play(steps []SourceStep) []Played {
	out := make([]Played, len(steps))
	parsed := make([]*step, len(steps)) // nil for steps that do not run on their own
	var s Scenario
	for i, source := range steps {
		before := len(s.script)
		err := s.add(txtar.File{Name: source.Name, Data: []byte(source.Body)})
		switch {
		case err != nil:
			out[i].Err = err
			s = Scenario{} // no write belongs to a step that failed
		case len(s.script) == before:
			out[i] = Played{Word: s.script[before-1].word, IsGrouped: true}
		default:
			parsed[i] = s.script[before]
		}
	}
	r := &runner{server: newServer(), maxOrders: maxPlayedOrders}
	var last *call // the engine's last call in the current step
	r.server.observe = func(c call) { last = &c }
	for i, st := range parsed {
		switch {
		case st != nil:
			last = nil
			out[i] = r.do(st)
			if last != nil && st.word == "apply" {
				out[i].plan(*last)
			}
			if s := r.server; len(s.versions) > 0 {
				out[i].Type, _ = s.types.Type(s.kind.WithVersion(s.versions[0]))
			}
		case out[i].Err != nil:
			out[i].Result = out[i].withObject(r.state)
		}
	}
	return out
}

// maxPlayedOrders is the maximum number of orders that [Play] runs.
const maxPlayedOrders = 1000

// plan adds the plan of an apply that was done, and the ways out of its conflicts.
func (p *Played) plan(c call) {
	options := plans.Options{Manager: c.write.manager, Force: c.write.force}
	p.Plan, _ = plans.New(context.Background(), c.manager, c.live, c.object, options)
	if p.Conflicts == nil {
		return
	}
	if report, err := conflictreport.New(context.Background(), c.manager, c.live, c.object, "", options); err == nil {
		p.Ways = report.Ways
	}
}
