package recorded

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// An Exception is the reason why a response may differ from the recorded one.
type Exception string

// The exceptions: bugs of the recorded server, and its version.
const (
	// NoException: the responses must be equal.
	NoException Exception = ""
	// ScaleFault: the recorded response to an apply to /scale of a custom resource is a 500.
	ScaleFault Exception = "an apply to /scale of a custom resource is no fault (difference 28)"
	// NullFault: an empty map or list in the applied configuration became null or, in a custom
	// resource, was rejected.
	NullFault Exception = "an empty map or list of an intent stays one, and is not null (difference 1)"
	// SchemaFault: the recorded response to a body that violates the schema is a 500.
	SchemaFault Exception = "a body that breaks the schema is answered by 400 in place of 500"
	// OtherVersion: both servers reject an invalid request or object, and the servers have different versions.
	OtherVersion Exception = "another version of Kubernetes refuses it in other words"
)

// A Result is the result of one step.
type Result struct {
	// Difference has one line for each difference; it is empty if the responses are equal.
	Difference string
	// Exception is set if the response differs and this exception allows the difference.
	Exception Exception
}

// Replay replays a trace on a new server. It compares the status code, the warnings and the body of each step. setClock
// sets the server's clock, so that Replay can compare times too. Replay stops at the first difference without an
// exception, because later steps depend on it. A step that changes the schema succeeds if the server accepts the
// schema.
func (r *Replayer) Replay(ctx context.Context, trace *Trace, setClock func(time.Time)) (results []Result, err error) {
	version, err := r.Get("/version")
	if err != nil {
		return nil, err
	}
	_, recordedVersion, _ := strings.Cut(trace.Server, " ")
	r.sameClock, r.otherVersion = true, !strings.Contains(string(version), `"`+recordedVersion+`"`)
	err = r.Run(ctx, trace, Hooks{
		Clock: func(step *Step, _ bool) error {
			if step.Now == "" {
				return nil
			}
			recordedTime, err := time.Parse(time.RFC3339, step.Now)
			if err != nil {
				return fmt.Errorf("the server's clock: %w", err)
			}
			setClock(recordedTime)
			return nil
		},
		Done: func(_ int, step *Step, answer *Answer) (bool, error) {
			var result Result
			if answer != nil {
				result = r.compare(step, answer)
			}
			results = append(results, result)
			return result.Difference == "" || result.Exception != NoException, nil
		},
	})
	return results, err
}

// compare compares a response with the recorded one.
func (r *Replayer) compare(step *Step, answer *Answer) (result Result) {
	differs := func(format string, args ...any) Result {
		result.Difference = fmt.Sprintf(format, args...)
		isCorrected := answer.Code < http.StatusMultipleChoices || answer.Code == http.StatusConflict
		if result.Exception = step.Fault(); result.Exception == SchemaFault {
			isCorrected = answer.Code == http.StatusBadRequest
		}
		if !isCorrected {
			result.Exception = NoException
		}
		return result
	}
	if answer.Code != step.Response.Code {
		return differs("code %d, want %d: %.700s", answer.Code, step.Response.Code, answer.Body)
	}
	got, want := slices.Sorted(
		slices.Values(answer.Header.Values("Warning")),
	), slices.Sorted(slices.Values(step.Response.Warnings))
	if !slices.Equal(got, want) {
		return differs("warnings %q, want %q", got, want)
	}
	var g map[string]any
	if err := utiljson.Unmarshal(answer.Body, &g); err != nil {
		return differs("no JSON: %v: %.200s", err, answer.Body)
	}
	fault := r.CompareVersions(g, step.Response.Body)
	r.Learn(g, step.Response.Body)
	if fault != "" {
		return differs("%s", fault)
	}
	sortCauses(g)
	recorded := runtime.DeepCopyJSON(step.Response.Body)
	sortCauses(recorded)
	if faults := r.Difference(g, recorded); len(faults) > 0 {
		differs("%s", strings.Join(faults, "\n"))
		isApply := step.Request.ContentType == string(types.ApplyPatchType)
		isInvalid := answer.Code == http.StatusBadRequest || answer.Code == http.StatusUnprocessableEntity
		switch {
		case r.otherVersion && isInvalid && g["reason"] == recorded["reason"]:
			result.Exception = OtherVersion
		case isApply && len(r.Difference(nullEmpty(g), nullEmpty(recorded))) == 0:
			result.Exception = NullFault
		}
	}
	return result
}

// sortCauses sorts the causes of a Status in place: kube-apiserver lists them in random order.
func sortCauses(status map[string]any) {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	sort.Slice(causes, func(i, j int) bool { return fmt.Sprint(causes[i]) < fmt.Sprint(causes[j]) })
}

// nullEmpty replaces empty maps and lists by null.
func nullEmpty(v any) any {
	switch t := v.(type) {
	case map[string]any:
		if len(t) == 0 {
			return nil
		}
		out := make(map[string]any, len(t))
		for name, item := range t {
			out[name] = nullEmpty(item)
		}
		return out
	case []any:
		if len(t) == 0 {
			return nil
		}
		out := make([]any, len(t))
		for i, item := range t {
			out[i] = nullEmpty(item)
		}
		return out
	}
	return v
}

// Fault returns the kube-apiserver bug that makes the step fail. A server without this bug accepts the request, or
// responds with another status code.
func (s *Step) Fault() Exception {
	message, _ := s.Response.Body["message"].(string)
	switch code := s.Response.Code; {
	case code == 500 && strings.HasSuffix(s.Request.Path, "/scale") && strings.Contains(message, "invalid group/version"):
		return ScaleFault
	case code == 422 && strings.Contains(message, `"null"`):
		return NullFault
	case code == 500 && strings.HasPrefix(message, "failed to c"):
		return SchemaFault
	}
	return NoException
}

// Hooks are called while a trace runs.
type Hooks struct {
	// Clock is called before each step. If isLater is true, the recorded clock is in a later second than at any earlier
	// step. The clock of the server must then advance too, because some results depend on whether the times of managed
	// fields entries change.
	Clock func(step *Step, isLater bool) error
	// Done gets each step with its response, which is nil if the step only changes the schema. The run ends if Done
	// returns false or an error.
	Done func(number int, step *Step, answer *Answer) (goesOn bool, err error)
	// WithFaults applies to requests that fail because of a [Step.Fault]. If it is true, they are sent as they were
	// recorded. If it is false, they are sent as dry runs, so that a server that accepts them still has the recorded
	// state.
	WithFaults bool
}

// Run creates the CustomResourceDefinition and the namespaces that a trace needs, and then sends the steps of the
// trace. It returns [Unfit] if the server can't create them, or does not serve the resource of the first step.
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
	last := "" // the latest recorded time
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
