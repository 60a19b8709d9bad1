package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// An Exception is the reason why a response may differ from the recorded one.
type Exception string

// The exceptions: bugs of the recorded server, and incomplete
// traces.
const (
	// NoException: the response must be equal.
	NoException Exception = ""
	// ScaleFault: the recorded response to an apply to /scale of a custom resource is a 500.
	ScaleFault Exception = "correction: an apply to /scale of a custom resource is no fault"
	// NullFault: an empty map or list in the applied configuration became null or, in a custom
	// resource, was rejected.
	NullFault Exception = "correction: an empty map or list of an intent stays one, and is not null"
	// SchemaFault: the recorded response to a body that violates the schema is a 500.
	SchemaFault Exception = "correction: a body that breaks the schema is answered by 400 in place of 500"
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

// Replay replays a trace over TLS on a new server whose clock is the recorded one. It compares
// status code, warnings and body of every step. It stops at the first difference without an
// exception, because later steps depend on it. Steps that change the schema succeed if the
// server accepts the schema. The server has the Hooks of options, and all else from here.
func Replay(ctx context.Context, trace *Trace, options apiserver.Options) (results []Result, err error) {
	now := new(atomic.Int64)
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	store := memory.New(memory.Options{})
	defer func() { err = errors.Join(err, store.Close()) }()
	server, err := apiserver.Start(ctx, apiserver.Options{
		Store: store, Now: func() time.Time { return time.Unix(now.Load(), 0).UTC() },
		Log: slog.New(slog.DiscardHandler), Hooks: options.Hooks,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	r := OfClient(client, server.URL())
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
			now.Store(max(now.Load(), at.Unix()))
		}
		result, err := r.replay(ctx, store, step)
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

// replay replays one step. If an exception explains that only the recorded server rejected the
// write, it undoes the write.
func (r *Replayer) replay(ctx context.Context, store storage.Store, step *Step) (Result, error) {
	body, err := json.Marshal(step.Request.Body)
	if err != nil {
		return Result{}, err
	}
	if step.Request.Method == "CRD" {
		crd, _ := step.Request.Body.(map[string]any)
		return Result{}, r.define(crd)
	}
	var kept *storedObject
	if r.defined[groupOf(step)] { // exceptions are about custom resources
		if kept, err = openObject(store, step); err == nil {
			err = kept.read(ctx)
		}
	}
	if err != nil {
		return Result{}, err
	}
	answer, err := r.Ask(step.Request.request(string(body)))
	if err != nil {
		return Result{}, err
	}
	result := r.compare(step, answer)
	if result.Exception != NoException && kept != nil && step.Response.Code >= http.StatusMultipleChoices {
		err = r.undo(ctx, kept)
	}
	return result, err
}

// request returns the request with a body.
func (r *Asked) request(body string) Request {
	q := Request{Method: r.Method, Target: r.Path, Header: map[string]string{"Content-Type": r.ContentType}, Body: body}
	if r.Query != "" {
		q.Target += "?" + r.Query
	}
	if r.UserAgent != "" {
		q.Header["User-Agent"] = r.UserAgent
	}
	return q
}

// compare compares a response with the recorded one.
func (r *Replayer) compare(step *Step, answer *Answer) (result Result) {
	differs := func(format string, args ...any) Result {
		result.Difference = fmt.Sprintf(format, args...)
		result.Exception = r.exceptionOf(step, answer)
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

// exceptionOf returns the exception that explains a difference.
func (r *Replayer) exceptionOf(step *Step, answer *Answer) Exception {
	message, _ := step.Response.Body["message"].(string)
	custom := r.defined[groupOf(step)]
	switch code := step.Response.Code; {
	case code == 500 && custom && strings.HasSuffix(step.Request.Path, "/scale") &&
		strings.Contains(message, "invalid group/version"):
		return ScaleFault
	case code == 422 && custom && strings.Contains(message, `"null"`):
		return NullFault
	case code == 500 && strings.HasPrefix(message, "failed to c") && answer.Code == 400:
		return SchemaFault
	}
	return NoException
}
