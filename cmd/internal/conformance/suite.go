package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

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
	client.Timeout = recorded.Patience
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	report = &Report{Server: strings.TrimSuffix(server.String(), "/"), At: time.Now()}
	s := &suite{options, cluster{r: recorded.OfClient(client, report.Server)}}
	text, err := s.r.Get("/version")
	if err == nil {
		err = json.Unmarshal(text, &report.Version)
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
}

// run runs a trace in a namespace of its own.
func (s *suite) run(ctx context.Context, trace *recorded.Trace) (result Result, err error) {
	result = Result{Trace: trace.Name, About: trace.About}
	started := time.Now()
	namespace, err := s.makeNamespace()
	if err != nil {
		return result, err
	}
	err = s.play(ctx, trace, namespace, &result)
	result.Took = time.Since(started)
	if unfit := recorded.Unfit(""); errors.As(err, &unfit) {
		result.Skipped, err = string(unfit), nil
	}
	if !s.Keep {
		err = errors.Join(err, s.empty(namespace, trace))
	}
	return result, err
}

// play sends the steps of a trace, up to the first one that differs.
func (s *suite) play(ctx context.Context, trace *recorded.Trace, namespace string, result *Result) error {
	state := newState(s.r.InNamespace(namespace), trace)
	return state.r.Run(ctx, trace, recorded.Hooks{
		Clock: func(step *recorded.Step, isLater bool) error {
			if isLater {
				s.NextSecond()
				state.before, state.second = state.updated, step.Now
			}
			return nil
		},
		Done: func(number int, step *recorded.Step, answer *recorded.Answer) (bool, error) {
			if answer == nil {
				state.redefined = true
				return true, nil
			}
			differences, note, err := state.compare(step, answer)
			if err != nil {
				return false, err
			}
			if note != "" && !slices.Contains(result.Notes, note) {
				result.Notes = append(result.Notes, note)
			}
			if len(differences) > 0 {
				return false, result.fail(number, step, differences)
			}
			return true, nil
		},
	})
}
