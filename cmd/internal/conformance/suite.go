package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/testdata/traces"
)

// Options say what runs, and how.
type Options struct {
	// Select selects traces by their names, such as scenarios/hpa-handover.
	Select *regexp.Regexp
	// Keep leaves namespaces, objects and CustomResourceDefinitions.
	Keep bool
	// NextSecond waits until the server's clock shows another second.
	NextSecond func()
}

// Run runs the traces on the server of a configuration, and deletes what it created. It returns the report of the
// traces that ran also with an error, which says why others did not, or what was not deleted.
func Run(ctx context.Context, config *rest.Config, options Options) (report *Report, err error) {
	all, err := recorded.LoadFS(traces.Files)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Timeout = patience
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	s := &suite{Options: options, client: client, url: strings.TrimSuffix(server.String(), "/")}
	s.cluster = cluster{r: recorded.OfClient(client, s.url), defined: map[string]string{}}
	config = rest.CopyConfig(config)
	config.QPS = -1 // no limit
	if s.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	report = &Report{Server: s.url, At: time.Now()}
	text, err := s.get("/version")
	if err == nil {
		err = json.Unmarshal([]byte(text), &report.Version)
	}
	if err != nil {
		return nil, err
	}
	if !options.Keep {
		// What was created is deleted, however this ends.
		defer func() { err = errors.Join(err, s.cleanUp(context.WithoutCancel(ctx))) }()
	}
	for _, trace := range all {
		trace.Name = strings.TrimSuffix(trace.Name, ".json")
		if !options.Select.MatchString(trace.Name) {
			continue
		}
		result, err := s.run(ctx, trace)
		if err != nil {
			return report, fmt.Errorf("%s: %w", trace.Name, err)
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

type suite struct {
	Options
	cluster
	client *http.Client
	url    string
}

// run runs a trace in a namespace of its own.
func (s *suite) run(ctx context.Context, trace *recorded.Trace) (result Result, err error) {
	result = Result{Trace: trace.Name, About: trace.About}
	started := time.Now()
	namespace, err := s.makeNamespace(ctx)
	if err != nil {
		return result, err
	}
	err = s.play(ctx, trace, namespace, &result)
	result.Took = time.Since(started)
	if skipped, ok := err.(errSkipped); ok {
		result.Skipped, err = string(skipped), nil
	}
	if !s.Keep {
		err = errors.Join(err, s.empty(context.WithoutCancel(ctx), namespace, trace))
	}
	return result, err
}

// play sends the steps of a trace, up to the first one that differs.
func (s *suite) play(ctx context.Context, trace *recorded.Trace, namespace string, result *Result) error {
	if trace.CRD != nil {
		if err := s.define(ctx, trace.CRD); err != nil {
			return err
		}
	}
	if err := s.serves(ctx, &trace.Steps[0]); err != nil {
		return err
	}
	state := newState(recorded.OfClient(s.client, s.url), trace)
	state.r.InNamespace(namespace)
	for i := range trace.Steps {
		step := &trace.Steps[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if trace.Later(i) {
			s.NextSecond()
			state.before, state.second = state.updated, step.Now
		}
		if step.Request.Method == "CRD" {
			crd, _ := step.Request.Body.(map[string]any)
			state.redefined = true
			if err := s.define(ctx, crd); err != nil {
				return err
			}
			continue
		}
		answer, err := state.r.Send(step)
		if err != nil {
			return err
		}
		differences, note, err := state.compare(step, answer)
		if err != nil {
			return err
		}
		if note != "" && !slices.Contains(result.Notes, note) {
			result.Notes = append(result.Notes, note)
		}
		if len(differences) > 0 {
			return result.fail(i, step, differences)
		}
	}
	return nil
}
