package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Result is the result of one step of a trace.
type Result struct {
	recorded.Result
	// Trace is the name of the trace; Step is the position of the step, from 0.
	Trace string
	Step  int
	// Kind is the kind of write, such as apply, update or create.
	Kind string
	// Skipped is the reason why the step was not sent.
	Skipped string
	// Plan is nil if the step is not an apply.
	Plan *Plan
}

// replay replays a trace on a new server. If no server recorded the trace, or if only the files of --schema define its
// kind, replay uses the engine without a server. The error is the reason why the trace can't be replayed.
func replay(ctx context.Context, trace *recorded.Trace, schemas []string) ([]Result, error) {
	return replayWith(ctx, trace, schemas, func(server http.RoundTripper) http.RoundTripper { return server })
}

// replayWith is replay with a function that can change the requests to the server and its responses.
func replayWith(
	ctx context.Context, trace *recorded.Trace, schemas []string, change func(http.RoundTripper) http.RoundTripper,
) ([]Result, error) {
	var current atomic.Int64
	current.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	clock := func() time.Time { return time.Unix(current.Load(), 0).UTC() }
	env := &process.Env{Stderr: io.Discard, Context: ctx, Now: clock}
	// The recorded time is the time of the newest change in the response, which may be older than the previous step.
	// A server's clock does not go back.
	setClock := func(date time.Time) { current.Store(max(current.Load(), date.Unix())) }
	if err := emulate(trace.Server); err != nil {
		return nil, err
	}
	p, url := &planner{env: env}, ""
	isForEngine, err := trace.Server == besideUpstream, error(nil)
	if !isForEngine && trace.CRD == nil && len(schemas) > 0 {
		if isForEngine, err = isUnknown(trace); err != nil {
			return nil, err
		}
	}
	if isForEngine {
		if err := p.planOnEngine(trace, schemas); err != nil {
			return nil, err
		}
		undefined := *trace
		undefined.CRD = nil // the engine has the definition
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

// results returns the results of all steps of a trace. The parameter compared has the results of the first steps. The
// other steps were skipped; the parameter why is the reason.
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

// planOn makes the planner use a server for its requests and for the objects.
func (p *planner) planOn(config *rest.Config) (err error) {
	if p.next, err = rest.TransportFor(config); err != nil {
		return err
	}
	client, err := cluster.Local(config)
	if err != nil {
		return err
	}
	p.place = func(namespace string) place.Place { return place.NewCluster(client, namespace) }
	p.kindOf = func(target recorded.Target) (schema.GroupVersionKind, error) {
		return client.KindFor(schema.GroupVersionResource{
			Group: target.Group, Version: target.Version, Resource: target.Resource,
		})
	}
	p.defined = client.ForgetDiscovery
	return nil
}

// emulate sets the feature gates of this process as in the Kubernetes version of a server, such as
// "kube-apiserver v1.36.3". If server has no version, emulate uses openapi.KubernetesVersion.
func emulate(server string) error {
	_, text, _ := strings.Cut(server, " ")
	v, err := version.ParseMajorMinor(text)
	if err != nil {
		v = version.MustParseMajorMinor(openapi.KubernetesVersion)
	}
	return feature.DefaultMutableFeatureGate.SetEmulationVersion(v)
}

// kindOf returns the kind of write, for the table of results.
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
	target, _ := s.Request.Target() // no subresource on errors
	return strings.TrimSpace(kind + " " + target.Subresource)
}

// Report has the results of all steps of the traces.
type Report []Result

// outcome returns the outcome of a step.
func (r *Result) outcome() string {
	switch {
	case r.Skipped != "":
		return "skipped"
	case r.Difference == "" && r.Plan.Difference() == "":
		return "agreed"
	case r.Exception != "" && r.Plan.Difference() == "":
		return "explained"
	}
	return "differed"
}

// why returns the reason for which a step was skipped or explained; "" for other steps.
func (r *Result) why() string {
	if r.outcome() == "explained" {
		return string(r.Exception)
	}
	return r.Skipped
}

// Count returns the number of steps with a kind and an outcome; "" means all kinds.
func (r Report) Count(kind, outcome string) (n int) {
	for i := range r {
		if (kind == "" || kind == r[i].Kind) && r[i].outcome() == outcome {
			n++
		}
	}
	return n
}

// Plans returns the number of plans that agree, that differ, and that can't be compared.
func (r Report) Plans() (agree, differ, uncompared int) {
	for _, result := range r {
		switch plan := result.Plan; {
		case plan == nil:
		case plan.Served == notValidated:
			uncompared++
		case plan.Difference() == "":
			agree++
		default:
			differ++
		}
	}
	return agree, differ, uncompared
}

// Write writes, in this order: a line for every step, if isVerbose; the differences; the outcomes by kind of write;
// the reasons for explained and skipped steps; and the totals, in final lines of the form
//
//	plans: A agree, B differ
//	plans: C not compared, as only a server validates values
//	N steps: D agreed, E differed, F explained, G skipped
//
// The second line is omitted if C is 0. In the output, steps are numbered from 1.
func (r Report) Write(w io.Writer, isVerbose bool) error {
	var out strings.Builder
	kinds, reasons := map[string]bool{}, map[string]int{}
	for i := range r {
		result := &r[i]
		kinds[result.Kind] = true
		title := fmt.Sprintf("%s step %d (%s)", result.Trace, result.Step+1, result.Kind)
		if why := result.why(); why != "" {
			reasons[result.outcome()+": "+why]++
		}
		if isVerbose {
			fmt.Fprintf(&out, "%-9s %s\n", result.outcome(), title)
		}
		if result.outcome() == "differed" {
			detail := strings.TrimSpace(result.Difference + "\n" + result.Plan.Difference())
			fmt.Fprintf(&out, "%s differs:\n  %s\n\n", title, strings.ReplaceAll(detail, "\n", "\n  "))
		}
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WRITE\tAGREED\tDIFFERED\tEXPLAINED\tSKIPPED")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", kind, r.Count(kind, "agreed"), r.Count(kind, "differed"),
			r.Count(kind, "explained"), r.Count(kind, "skipped"))
	}
	_ = table.Flush() // writes to memory: no error
	fmt.Fprintln(&out)
	for _, reason := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "%5d %s\n", reasons[reason], reason)
	}
	agree, differ, uncompared := r.Plans()
	fmt.Fprintf(&out, "plans: %d agree, %d differ\n", agree, differ)
	if uncompared > 0 {
		fmt.Fprintf(&out, "plans: %d not compared, as only a server validates values\n", uncompared)
	}
	fmt.Fprintf(&out, "%s: %d agreed, %d differed, %d explained, %d skipped\n",
		printable.Counted(len(r), "step", "steps"), r.Count("", "agreed"), r.Count("", "differed"),
		r.Count("", "explained"), r.Count("", "skipped"))
	_, err := io.WriteString(w, out.String())
	return err
}
