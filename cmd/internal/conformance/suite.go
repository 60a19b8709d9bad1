// Package conformance checks server-side apply of any API server. It sends the recorded writes of testdata/traces,
// and compares the responses with kube-apiserver's. Each difference is reported with the rule of doc/spec.md that it
// breaks.
//
// Every trace runs in its own namespace. Values that may differ between servers are not compared: generated values, the
// text of errors, and fields of built-in kinds that no manager in the trace has ever owned, because such fields are
// defaults of one Kubernetes version. A trace ends at its first step with a difference, because later steps depend on
// it.
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/testdata/traces"
)

// Options say which traces to run, and how.
type Options struct {
	// Select matches the names of traces to run, such as scenarios/hpa-handover.
	Select *regexp.Regexp
	// Keep keeps namespaces, objects and CustomResourceDefinitions.
	Keep bool
	// NextSecond waits until the server's clock has advanced to another second.
	NextSecond func()
}

// Run runs the traces on a server, and deletes what it created. If there is an error, it still returns the report
// about the traces that ran; the error says why other traces did not run, or which objects were not deleted.
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
		// Delete the created objects in any case.
		defer func() { err = errors.Join(err, s.cleanUp(context.WithoutCancel(ctx))) }()
	}
	for _, trace := range all {
		trace.Name = strings.TrimSuffix(trace.Name, ".json")
		if !options.Select.MatchString(trace.Name) {
			continue
		}
		if report.Missing != "" && trace.CRD != nil {
			report.Results = append(report.Results, Result{Trace: trace.Name, About: trace.About, Skipped: report.Missing})
			continue
		}
		result, err := s.run(ctx, trace)
		if err != nil && len(report.Results) == 0 {
			return nil, fmt.Errorf("%s: %w", trace.Name, err) // the server lacks resources that every trace needs
		} else if err != nil {
			return report, fmt.Errorf("%s: %w", trace.Name, err)
		}
		if result.Skipped == string(recorded.Unpublished) {
			report.Missing = result.Skipped
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

type suite struct {
	Options
	cluster
}

// run runs a trace in its own namespace.
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

// play sends the steps of a trace, up to the first one with a difference.
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

const namespacesPath = "/api/v1/namespaces"

// cluster is the server, with the objects that were created in it.
//
// Invariant: at the end, exactly the namespaces in the field namespaces, and the CustomResourceDefinitions of r, must
// be deleted.
type cluster struct {
	r          *recorded.Replayer // for requests outside of traces
	namespaces []string
}

// ask sends a request that is not in a trace, and returns the object in the response; nil if the object does not
// exist.
func (c *cluster) ask(method, target string, contentType types.PatchType, body any) (map[string]any, error) {
	header := map[string]string{"Content-Type": string(contentType)}
	answer, err := c.r.Ask(recorded.Request{Method: method, Target: target, Header: header, Body: body})
	switch {
	case err != nil:
		return nil, err
	case answer.Code == http.StatusNotFound:
		return nil, nil
	case answer.Code >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s %s: status %d: %.300s", method, target, answer.Code, answer.Body)
	}
	var object map[string]any
	return object, utiljson.Unmarshal(answer.Body, &object)
}

// write sends an object as the JSON body of a request.
func (c *cluster) write(method, target string, object any) error {
	_, err := c.ask(method, target, "application/json", object)
	return err
}

// items lists objects.
func (c *cluster) items(target string) (items []*unstructured.Unstructured, err error) {
	list, err := c.ask(http.MethodGet, target, "", nil)
	all, _ := list["items"].([]any)
	for _, item := range all {
		object, _ := item.(map[string]any)
		items = append(items, &unstructured.Unstructured{Object: object})
	}
	return items, err
}

// makeNamespace creates a namespace for a trace.
func (c *cluster) makeNamespace() (string, error) {
	name := "ssa-conformance-" + string(uuid.NewUUID())[:8]
	c.namespaces = append(c.namespaces, name)
	made, err := c.ask(http.MethodPost, namespacesPath, "application/json", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "ssa-conformance"},
		},
	})
	if err == nil && made == nil {
		err = errors.New("the server serves no namespaces: use conformance resources --namespace, which creates none")
	}
	return name, err
}

// empty deletes the objects of a trace and its namespace. It removes finalizers instead of waiting for controllers.
func (c *cluster) empty(namespace string, trace *recorded.Trace) error {
	target, err := trace.Steps[0].Request.Target()
	if err != nil {
		return err
	}
	target.Namespace = namespace
	objects, err := c.items(target.Collection())
	errs := []error{err}
	for _, object := range objects {
		path := target.Collection() + "/" + object.GetName()
		if len(object.GetFinalizers()) > 0 {
			patch := map[string]any{"metadata": map[string]any{"finalizers": nil}}
			_, err := c.ask(http.MethodPatch, path, types.MergePatchType, patch)
			errs = append(errs, err)
		}
		errs = append(errs, c.write(http.MethodDelete, path+"?gracePeriodSeconds=0", nil))
	}
	return errors.Join(append(errs, c.write(http.MethodDelete, namespacesPath+"/"+namespace, nil))...)
}

// cleanUp deletes the definitions, and waits until they and the namespaces no longer exist.
func (c *cluster) cleanUp(ctx context.Context) error {
	var errs []error
	var deleted []string
	for _, name := range c.r.Defined() {
		deleted = append(deleted, recorded.DefinitionsPath+"/"+name)
		errs = append(errs, c.write(http.MethodDelete, recorded.DefinitionsPath+"/"+name, nil))
	}
	for i, name := range c.namespaces {
		deleted = append(deleted, namespacesPath+"/"+name)
		// Only for the first namespace, wait for a namespace controller to react. If there is one, it has reacted to
		// later namespaces meanwhile.
		errs = append(errs, c.finalize(name, i == 0))
	}
	for _, path := range deleted {
		errs = append(errs, recorded.Await(ctx, path+" is not deleted", func() (bool, error) {
			object, err := c.ask(http.MethodGet, path, "", nil)
			return object == nil && err == nil, err
		}))
	}
	return errors.Join(errs...)
}

// finalize completes the deletion of a namespace if no namespace controller does. If controllers run, the namespace has
// conditions from the namespace controller, or a ServiceAccount from another controller.
func (c *cluster) finalize(name string, isFirst bool) error {
	path := namespacesPath + "/" + name
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		namespace, err := c.ask(http.MethodGet, path, "", nil)
		if err != nil || namespace == nil {
			return err
		}
		if _, ok, _ := unstructured.NestedSlice(namespace, "status", "conditions"); ok {
			return nil
		}
		if isFirst && time.Now().Before(deadline) {
			continue
		}
		accounts, err := c.items(path + "/serviceaccounts?limit=1")
		if err != nil || len(accounts) > 0 {
			return err
		}
		namespace["spec"] = map[string]any{}
		return c.write(http.MethodPut, path+"/finalize", namespace)
	}
}
