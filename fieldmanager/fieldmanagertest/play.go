package fieldmanagertest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/txtar"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed"
)

// Source is a scenario in its text form, without its expected results.
type Source struct {
	// About is the comment without the lines for programs, and Rules are the rules that these list.
	About string
	Rules []string
	// Steps are its steps, in order.
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
		s.Steps = append(s.Steps, SourceStep{st.name, string(st.body)})
		for _, write := range st.grouped {
			s.Steps = append(s.Steps, SourceStep{write.name, string(write.body)})
		}
	}
	return s, nil
}

// Played is what a step did.
type Played struct {
	// Word is the first word of the step: apply, schema and so on.
	Word string
	// Before is a copy of the object before the step, nil if there was none. The object after it is in Result.
	Before *unstructured.Unstructured
	// Type is the type of the object after the step, nil as long as it is not known.
	Type *typed.Type
	// Result is the result of a write. Of other steps it has the object, and the error if the step failed.
	Result
	// Plan is the plan of an apply that could be planned. Its values belong to the engine.
	Plan *plans.Plan
	// Ways are the ways out of the conflicts of an apply.
	Ways []conflictreport.WayOut
	// Intent is what an extract step returns.
	Intent map[string]any
	// Orders is the report of an interleave step.
	Orders *Interleaving
	// IsGrouped reports that the step is a write of the interleave step before it, and has no result of its own.
	IsGrouped bool
}

// Play runs steps without expected results, and returns what each did. A step that fails changes nothing, and the
// steps after it run. Writes that follow an interleave belong to it, up to the next step of another kind.
func Play(steps []SourceStep) []Played {
	parsed, errs, grouped := make([]*step, len(steps)), make([]error, len(steps)), make([]bool, len(steps))
	var s Scenario
	for i, source := range steps {
		before := len(s.script)
		if errs[i] = s.add(txtar.File{Name: source.Name, Data: []byte(source.Body)}); errs[i] != nil {
			s = Scenario{} // nothing belongs to what failed
			continue
		}
		parsed[i], grouped[i] = s.script[len(s.script)-1], len(s.script) == before
	}
	r := &runner{server: newServer()}
	out := make([]Played, len(steps))
	for i, st := range parsed {
		switch {
		case errs[i] != nil:
			out[i] = Played{Result: r.current(errs[i])}
		case grouped[i]:
			out[i] = Played{Word: st.word, IsGrouped: true}
		default:
			out[i] = r.play(st)
		}
	}
	return out
}

// maxPlayedOrders is the largest number of orders that [Play] runs.
const maxPlayedOrders = 1000

// play runs a step.
func (r *runner) play(st *step) Played {
	p := Played{Word: st.word, Before: r.state.object()}
	switch st.word {
	case "schema", "crd", "deduced", "live":
		_, err := r.do(st)
		p.Result = r.current(err)
	case "extract":
		intent, err := r.extract(st)
		p.Intent, p.Result = intent, r.current(err)
	case "interleave":
		var err error
		if len(st.grouped) == 0 {
			err = fmt.Errorf("step %q: expected writes after it", st.name)
		} else {
			sample := Sample{Limit: min(st.number("limit"), maxPlayedOrders), Seed: uint64(st.number("seed"))}
			p.Orders = r.server.interleave(r.state, sample, sequencesOf(st.grouped), watch{})
		}
		p.Result = r.current(err)
	default:
		var calls []call
		r.server.observe = func(c call) { calls = append(calls, c) }
		next, out := r.server.do(r.state, st.write())
		r.server.observe = nil
		r.state = next
		p.Result = out.withObject(next)
		if len(calls) == 1 && st.word == "apply" {
			p.plan(calls[0])
		}
	}
	if s := r.server; len(s.versions) > 0 {
		p.Type, _ = s.types.Type(s.kind.WithVersion(s.versions[0]))
	}
	return p
}

// plan adds what the engine says about an apply that was done: its plan, and the ways out of its conflicts.
func (p *Played) plan(c call) {
	m, err := c.server.manager(c.kind, c.write.subresource)
	if err != nil {
		return
	}
	c.server.now = c.now
	warnings := c.server.warnings
	defer func() { c.server.warnings = warnings }()
	options := plans.Options{Manager: c.write.manager, Force: c.write.force}
	var live runtime.Object // nil for a create
	if c.live != nil {
		live = c.live
	}
	if plan, err := plans.New(context.Background(), m, live, c.object, options); err == nil {
		p.Plan = plan
	}
	if p.Conflicts == nil {
		return
	}
	if report, err := conflictreport.New(context.Background(), m, live, c.object, "", options); err == nil {
		p.Ways = report.Ways
	}
}

// current returns the object as the result of a step that is no write.
func (r *runner) current(err error) Result {
	return Result{Err: err}.withObject(r.state)
}
