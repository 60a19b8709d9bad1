package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/strategy"
)

// Outcomes that an apply can have on a server, but that a plan does not have.
const (
	created            = "created"
	refused            = "refused"
	preconditionFailed = "precondition failed"
	// notValidated means that the server rejects values that plans do not validate.
	notValidated = "not validated"
)

// Plan compares the plan of an apply with the server's outcome.
type Plan struct {
	// Planned and Served are outcomes, such as changed.
	Planned, Served string
	// err is the reason why the plan refuses the apply.
	err error
}

// Difference returns the difference between the plan and the server's outcome; "" if there is none, if they can't be
// compared, or if p is nil.
func (p *Plan) Difference() string {
	if p == nil || p.Planned == p.Served || p.Served == notValidated {
		return ""
	}
	return fmt.Sprintf("the plan's outcome is %s, the server's %s; the plan's error: %v", p.Planned, p.Served, p.err)
}

// planner plans each apply on the server's current object, as tenure plan does without dry runs, and then sends the
// apply.
type planner struct {
	env  *process.Env
	next http.RoundTripper
	// place returns the place of the objects in a namespace; kindOf returns the kind of a resource.
	place  func(namespace string) place.Place
	kindOf func(target recorded.Target) (schema.GroupVersionKind, error)
	// defined is called after a write to a CustomResourceDefinition.
	defined func()
	plans   []*Plan
}

// RoundTrip implements [http.RoundTripper].
func (p *planner) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodPatch || q.Header.Get("Content-Type") != string(types.ApplyPatchType) {
		if strings.HasPrefix(q.URL.Path, recorded.DefinitionsPath) {
			defer p.defined()
		}
		return p.next.RoundTrip(q)
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	q = q.Clone(q.Context())
	q.Body = io.NopCloser(bytes.NewReader(body))
	query := q.URL.Query()
	plan := &Plan{Planned: refused}
	live, planned, err := p.plan(q.Context(), q.URL.Path, query, body)
	switch {
	case errors.Is(err, plans.ErrPrecondition):
		plan.Planned = preconditionFailed
	case err != nil:
	case planned.Outcome == plans.Changed && live.Object == nil:
		plan.Planned = created
	default:
		plan.Planned = planned.Outcome.String()
	}
	plan.err = err
	response, err := p.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	var object map[string]any
	_ = utiljson.Unmarshal(body, &object) // if it is not JSON, object is nil
	plan.Served = served(live, query.Has("dryRun"), response.StatusCode, object)
	if response.StatusCode == http.StatusUnprocessableEntity && plan.Planned != refused {
		plan.Served = notValidated
	}
	p.plans = append(p.plans, plan)
	return response, nil
}

// plan plans an apply. It returns the target of the apply, which is the object or its Scale.
func (p *planner) plan(ctx context.Context, path string, query url.Values, body []byte) (
	live *place.Target, _ *plans.Plan, err error) {
	target, err := recorded.ParseTarget(path)
	if err != nil {
		return nil, nil, err
	}
	patch := &metav1.PatchOptions{FieldManager: query.Get("fieldManager"), DryRun: query["dryRun"]}
	if errs := metav1validation.ValidatePatchOptions(patch, types.ApplyPatchType); len(errs) > 0 {
		return nil, nil, errs.ToAggregate()
	}
	var intent map[string]any
	if err := utiljson.Unmarshal(body, &intent); err != nil {
		return nil, nil, err
	}
	kind, err := p.kindOf(target)
	if err != nil {
		return nil, nil, err
	}
	object := intent
	expected := kind
	if target.Subresource == place.Scale {
		expected = place.ScaleKind
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		u.SetName(target.Name)
		object = u.Object
	}
	switch gvk, err := document.GVKOf(intent); {
	case err != nil:
		return nil, nil, err
	case gvk != expected:
		return nil, nil, fmt.Errorf("kind: expected %s, got %s", expected, gvk)
	case document.NameOf(intent) != target.Name:
		return nil, nil, fmt.Errorf("metadata.name: expected %q, got %q", target.Name, document.NameOf(intent))
	}
	if live, _, err = p.place(target.Namespace).Live(ctx, object); err != nil {
		return nil, nil, err
	}
	if target.Subresource == place.Scale {
		if live, err = live.LiveScale(); err != nil {
			return nil, nil, err
		}
	}
	live = live.Stored()
	m, err := live.Manager(p.env.Now, target.Subresource)
	if err != nil {
		return nil, nil, err
	}
	options := live.PlanOptions(false)
	force := strings.ToLower(query.Get("force")) // any other value means force
	options.Manager, options.Force = patch.FieldManager, query.Has("force") && force != "false" && force != "0"
	options.Validate = decodes(expected)
	plan, err := plans.New(ctx, m, place.Wrap(live.Object), place.Wrap(intent), options)
	return live, plan, err
}

// decodes returns the validation for plans of a built-in kind: the object must be decodable into its Go type.
func decodes(kind schema.GroupVersionKind) func(merged, live runtime.Object) error {
	into, ok := strategy.NewObject(kind)
	if !ok {
		return nil
	}
	return func(merged, _ runtime.Object) error {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(merged)
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, into, true)
	}
}

// served returns the outcome of an apply on a server, according to its response. live is nil if there is no plan.
func served(live *place.Target, isDryRun bool, code int, body map[string]any) string {
	switch {
	case code == http.StatusConflict && strings.HasPrefix(fmt.Sprint(body["message"]), "Operation cannot be fulfilled"):
		return preconditionFailed
	case code == http.StatusConflict:
		return plans.Conflict.String()
	case code >= http.StatusMultipleChoices:
		return refused
	case live == nil:
		return plans.Changed.String()
	case live.Object == nil:
		return created
	}
	outcome := live.ServedOutcome(body)
	if !isDryRun {
		switch version := document.TextAt(body, "resourceVersion"); {
		case version == document.TextAt(live.Object, "resourceVersion"):
			outcome = plans.Unchanged
		case outcome == plans.Unchanged:
			outcome = plans.OwnershipOnly // another resourceVersion: the object was written
		}
	}
	return outcome.String()
}
