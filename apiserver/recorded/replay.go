package recorded

import (
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

// The exceptions: bugs of the recorded server, and incomplete
// traces.
const (
	// NoException: the response must be equal.
	NoException Exception = ""
	// ScaleFault: the recorded response to an apply to /scale of a custom resource is a 500.
	ScaleFault Exception = "an apply to /scale of a custom resource is no fault (difference 28)"
	// NullFault: an empty map or list in the applied configuration became null or, in a custom
	// resource, was rejected.
	NullFault Exception = "an empty map or list of an intent stays one, and is not null (difference 1)"
	// SchemaFault: the recorded response to a body that violates the schema is a 500.
	SchemaFault Exception = "a body that breaks the schema is answered by 400 in place of 500"
	// NoDefinition: the trace lacks the CustomResourceDefinition of its kind.
	NoDefinition Exception = "the trace has no CustomResourceDefinition of the group, so that no server could answer"
)

// A Result is the result of one step.
type Result struct {
	// Difference has one line for each difference; it is empty if the responses are equal.
	Difference string
	// Exception allows the response to differ, and it does.
	Exception Exception
}

// Replay replays a trace on a new server. It compares status code, warnings and body of every step. setClock sets the
// server's clock, so that times are compared, too. It stops at the first difference without an exception, because later
// steps depend on it. Steps that change the schema succeed if the server accepts the schema.
func (r *Replayer) Replay(trace *Trace, setClock func(time.Time)) (results []Result, err error) {
	r.sameClock = true
	if trace.CRD != nil {
		if err := r.define(trace.CRD); err != nil {
			return nil, err
		}
	}
	if err := r.makeNamespaces(trace); err != nil {
		return nil, err
	}
	for i := range trace.Steps {
		step := &trace.Steps[i]
		if step.Now != "" {
			at, err := time.Parse(time.RFC3339, step.Now)
			if err != nil {
				return results, fmt.Errorf("step %d: the server's clock: %w", i+1, err)
			}
			setClock(at)
		}
		result, err := r.replay(step)
		if err != nil {
			return results, fmt.Errorf("step %d: %w", i+1, err)
		}
		if result.Difference != "" && result.Exception == NoException && !r.serves(step) {
			result.Exception = NoDefinition
		}
		results = append(results, result)
		if result.Difference != "" && result.Exception == NoException {
			break
		}
	}
	return results, nil
}

func (r *Replayer) replay(step *Step) (Result, error) {
	if step.Request.Method == "CRD" {
		crd, _ := step.Request.Body.(map[string]any)
		return Result{}, r.define(crd)
	}
	answer, err := r.Send(step)
	if err != nil {
		return Result{}, err
	}
	return r.compare(step, answer), nil
}

// compare compares a response with the recorded one.
func (r *Replayer) compare(step *Step, answer *Answer) (result Result) {
	differs := func(format string, args ...any) Result {
		result.Difference = fmt.Sprintf(format, args...)
		if result.Exception = step.Fault(); result.Exception == SchemaFault && answer.Code != http.StatusBadRequest {
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
	r.Learn(g, step.Response.Body)
	sortCauses(g)
	recorded := runtime.DeepCopyJSON(step.Response.Body)
	sortCauses(recorded)
	if faults := r.Difference(g, recorded); len(faults) > 0 {
		differs("%s", strings.Join(faults, "\n"))
		isApply := step.Request.ContentType == string(types.ApplyPatchType)
		if isApply && len(r.Difference(nullEmpty(g), nullEmpty(recorded))) == 0 {
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

// Fault returns the fault by which kube-apiserver fails the step. A server without it accepts the request, or has
// another status code.
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
