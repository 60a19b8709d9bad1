// Package replay replays recorded traces of kube-apiserver on a server in this process, and plans each apply on the
// object that this server then has.
package replay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Result is the result of one step.
type Result struct {
	recorded.Result
	// Trace is the name of the trace, and Step the position of the step, from 0.
	Trace string
	Step  int
	// Kind is the kind of write: apply, update, create …
	Kind string
	// Skipped is why the step was not sent.
	Skipped string
	// Plan is nil if the step is no apply.
	Plan *Plan
}

// Run replays a trace on a new server. The error says that it can't run.
func Run(ctx context.Context, trace *recorded.Trace) ([]Result, error) {
	return run(ctx, trace, func(server http.RoundTripper) http.RoundTripper { return server })
}

// run replays a trace on what change makes of a new server.
func run(ctx context.Context, trace *recorded.Trace, change func(http.RoundTripper) http.RoundTripper) (
	[]Result, error) {
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	clock := func() time.Time { return time.Unix(now.Load(), 0).UTC() }
	env := &process.Env{Stderr: io.Discard, Context: ctx, Now: clock}
	// The recorder takes the time from the newest change in the response, which may be older than the step before; a
	// server's clock does not go back.
	setClock := func(at time.Time) { now.Store(max(now.Load(), at.Unix())) }
	if err := emulate(trace.Server); err != nil {
		return nil, err
	}
	p, url := &planner{env: env}, ""
	if trace.Server == besideUpstream {
		if err := p.planOnEngine(trace); err != nil {
			return nil, err
		}
		undefined := *trace
		undefined.CRD = nil // the engine has it
		trace = &undefined
	} else {
		server, err := apiserver.New(ctx, apiserver.Options{Now: clock, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		defer server.Close()
		config := server.LoopbackConfig()
		config.WarningHandler = rest.NoWarnings{}
		if url, err = config.Host, p.planOn(config); err != nil {
			return nil, err
		}
	}
	p.next = change(p.next)
	compared, err := recorded.OfClient(&http.Client{Transport: p}, url).Replay(ctx, trace, setClock)
	why := "not sent after a difference"
	if unfit := recorded.Unfit(""); errors.As(err, &unfit) {
		why, err = string(unfit), nil
	}
	return results(trace, compared, p.plans, why), err
}

// results returns the results of all steps of a trace, of which the first were compared.
func results(trace *recorded.Trace, compared []recorded.Result, plans []*Plan, why string) (out []Result) {
	for i := range trace.Steps {
		result := Result{Trace: trace.Name, Step: i, Kind: kindOf(&trace.Steps[i]), Skipped: why}
		if i < len(compared) {
			result.Result, result.Skipped = compared[i], ""
			if strings.HasPrefix(result.Kind, "apply") {
				result.Plan, plans = plans[0], plans[1:]
			}
		}
		out = append(out, result)
	}
	return out
}

// planOn makes the planner send its requests to a server, and read the objects there.
func (p *planner) planOn(config *rest.Config) (err error) {
	if p.next, err = rest.TransportFor(config); err != nil {
		return err
	}
	client, err := cluster.Local(config)
	if err != nil {
		return err
	}
	p.place = func(namespace string) place.Place { return place.NewCluster(p.env, client, namespace) }
	p.kindOf = func(target recorded.Target) (schema.GroupVersionKind, error) {
		return client.KindFor(schema.GroupVersionResource{
			Group: target.Group, Version: target.Version, Resource: target.Resource,
		})
	}
	p.defined = client.ForgetDiscovery
	return nil
}

// emulate switches this process to the feature gates of a server such as "kube-apiserver v1.36.3", or to those of
// openapi.KubernetesVersion if server names no version.
func emulate(server string) error {
	_, text, _ := strings.Cut(server, " ")
	v, err := version.ParseMajorMinor(text)
	if err != nil {
		v = version.MustParseMajorMinor(openapi.KubernetesVersion)
	}
	return feature.DefaultMutableFeatureGate.SetEmulationVersion(v)
}

// kindOf returns the kind of write for the table of results.
func kindOf(s *recorded.Step) string {
	kind := strings.ToLower(s.Request.Method)
	switch s.Request.Method {
	case "CRD":
		return "schema"
	case http.MethodGet:
		return "read"
	case http.MethodPost:
		kind = "create"
	case http.MethodPut:
		kind = "update"
	case http.MethodPatch:
		kind = strings.TrimSuffix(strings.TrimPrefix(s.Request.ContentType, "application/"), "+json")
		if s.Request.ContentType == string(types.ApplyPatchType) {
			kind = "apply"
		}
	}
	target, _ := s.Request.Target() // of no subresource if it is none
	return strings.TrimSpace(kind + " " + target.Subresource)
}
