package recorded

import (
	"context"
	"fmt"
	"strings"
)

// Hooks are called when a trace runs.
type Hooks struct {
	// Clock is called before each step. isLater says that the recorded clock was in a later second than at all steps
	// before, so that the clock of the server has to go on, too: times of entries, and what follows from them, depend on
	// it.
	Clock func(step *Step, isLater bool) error
	// Done gets each step with its response, which is nil where only the schema changes. The run ends if it returns false,
	// or an error.
	Done func(number int, step *Step, answer *Answer) (goesOn bool, err error)
	// WithFaults sends also what kube-apiserver fails by a [Step.Fault] as it was sent. Otherwise that is a dry run: a
	// server that accepts it keeps the recorded state.
	WithFaults bool
}

// Run sends the steps of a trace, after the CustomResourceDefinition and the namespaces that they need. The error is
// [Unfit] if the server can't have them, or does not serve the resource of the first step.
func (r *Replayer) Run(ctx context.Context, trace *Trace, hooks Hooks) error {
	if trace.CRD != nil {
		if err := r.define(ctx, trace.CRD); err != nil {
			return err
		}
	}
	if err := r.makeNamespaces(trace); err != nil {
		return err
	}
	if err := r.serves(&trace.Steps[0]); err != nil {
		return err
	}
	last := "" // the latest time
	for i := range trace.Steps {
		step := &trace.Steps[i]
		isLater := last != "" && step.Now > last
		last = max(last, step.Now)
		goesOn, err := r.runStep(ctx, i, step, isLater, hooks)
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if !goesOn {
			break
		}
	}
	return nil
}

func (r *Replayer) runStep(ctx context.Context, number int, step *Step, isLater bool, hooks Hooks) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := hooks.Clock(step, isLater); err != nil {
		return false, err
	}
	var answer *Answer
	var err error
	if step.Request.Method == "CRD" {
		crd, _ := step.Request.Body.(map[string]any)
		err = r.define(ctx, crd)
	} else {
		asked := step.Request
		if !hooks.WithFaults && step.Fault() != NoException {
			asked.Query = strings.TrimPrefix(asked.Query+"&dryRun=All", "&")
		}
		answer, err = r.send(asked)
	}
	if err != nil {
		return false, err
	}
	return hooks.Done(number, step, answer)
}
