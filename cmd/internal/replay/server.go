package replay

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/kubernetes"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// RunServer replays one trace on an API server of its own, over HTTP: the code, the warnings and the
// whole response of each step, managed fields included, must be as recorded, except for what a server
// generates. The reasons of skips are the exceptions of package recorded, and an earlier step that
// differed. The server has the Validation of options.
//
// Before each apply the object is read from the server and the apply is planned. What this server then does, which is
// what the recorded one did but for the exceptions, must be what the plan says.
func RunServer(ctx context.Context, t *Trace, options apiserver.Options) ([]Result, error) {
	types := openapi.Builtin()
	p := &planner{trace: t, differences: map[int]error{}, planned: map[int]string{}, plans: map[int]PlanResult{}}
	p.r = &replayer{builtin: types, types: types, objects: map[target]object{}, validation: kubernetes.Validate}
	if t.CRD != nil {
		if err := p.r.define(t.CRD); err != nil {
			return nil, err
		}
	}
	results, err := recorded.Observe(ctx, t, options, &recorded.Observer{Before: p.before, After: p.after})
	if err != nil {
		return nil, err
	}
	out := make([]Result, len(t.Steps))
	for i := range t.Steps {
		out[i] = Result{Trace: t.Name, Step: i, Kind: kindOf(&t.Steps[i]), Planned: p.planned[i], Plan: p.plans[i]}
		switch {
		case i >= len(results):
			out[i].Outcome, out[i].Detail = Skipped, "an earlier step differed"
		case p.differences[i] != nil:
			out[i].Outcome, out[i].Detail = Differed, p.differences[i].Error()
		case results[i].Exception != recorded.NoException:
			out[i].Outcome, out[i].Detail = Skipped, string(results[i].Exception)
		case results[i].Difference != "":
			out[i].Outcome, out[i].Detail = Differed, strings.TrimSpace(results[i].Difference)
		case t.Steps[i].Request.Method == "CRD":
			out[i].Outcome, out[i].Detail = Skipped, string(skipSchemaChange)
		}
	}
	return out, nil
}

// planner plans the applies of a trace as it is replayed on a server.
type planner struct {
	trace       *Trace
	r           *replayer // its live is what the server has
	differences map[int]error
	planned     map[int]string
	plans       map[int]PlanResult

	// Of the apply that is under way.
	write *write // nil for another request
	live  map[string]any
	plan  planned
}

func (p *planner) before(i int, sent recorded.Asked, read func(path string) (*recorded.Answer, error)) error {
	p.write = nil
	step := p.trace.Steps[i]
	step.Request = sent
	if sent.Method == "CRD" {
		definition, _ := sent.Body.(map[string]any)
		return p.r.define(definition)
	}
	if sent.Method != http.MethodPatch || sent.ContentType != applyPatch {
		return nil
	}
	var err error
	if p.write, err = p.r.newWrite(&step); err != nil {
		return err
	}
	path := sent.Path
	if p.write.subresource != "" {
		path = strings.TrimSuffix(path, "/"+p.write.subresource)
	}
	answer, err := read(path)
	if err != nil {
		return err
	}
	p.r.object = object{}
	switch answer.Code {
	case http.StatusOK:
		if err := utiljson.Unmarshal(answer.Body, &p.r.live); err != nil {
			return err
		}
	case http.StatusNotFound:
	default:
		return fmt.Errorf("%s: %d: %.200s", path, answer.Code, answer.Body)
	}
	p.live = p.r.live
	if p.write.subresource == "scale" && p.live != nil {
		if p.live, _, err = p.write.liveScale(); err != nil {
			return err
		}
	}
	p.plan = p.write.planApply()
	return nil
}

func (p *planner) after(i int, answer *recorded.Answer) error {
	if p.write == nil {
		return nil
	}
	var body map[string]any
	if err := utiljson.Unmarshal(answer.Body, &body); err != nil {
		return nil // The resource is not served: there is no plan.
	}
	err := p.r.compared(p.plan, p.write.serverOutcome(p.live, answer.Code, body))
	p.planned[i] = p.plan.got
	p.plans[i], p.differences[i] = p.r.plan, err
	return nil
}
