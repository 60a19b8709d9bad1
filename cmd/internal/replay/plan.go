package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// What a server does with an apply, besides the outcomes of plans.
const (
	created            = "created"
	refused            = "refused"
	preconditionFailed = "precondition failed"
)

// planned is what became of the plan of an apply.
type planned struct {
	// got is what the plan says that the server does; the error is the plan's.
	got string
	err error
	// merged is the planned object, without defaults; nil if there is an error.
	merged map[string]any
}

// planApply plans an apply to live, the object that the step finds, as a client does who knows the schema and, of a
// built-in kind, what the server's code does. It says what the server will do.
func (w *write) planApply() planned {
	plan, err := w.plan()
	switch {
	case errors.Is(err, plans.ErrPrecondition):
		return planned{got: preconditionFailed, err: err}
	case err != nil:
		return planned{got: refused, err: err}
	}
	merged, _ := plan.Object.(*unstructured.Unstructured)
	out := planned{got: plan.Outcome.String()}
	if merged != nil {
		out.merged = merged.Object
	}
	if plan.Outcome == plans.Changed && w.r.live == nil {
		out.got = created
	}
	return out
}

func (w *write) plan() (*plans.Plan, error) {
	if err := w.checkRequest(); err != nil {
		return nil, err
	}
	options := plans.Options{Manager: w.manager, Force: w.force(), Defaults: true}
	if w.subresource == "scale" {
		// The server has a Go struct for a Scale.
		options.Semantics = typed.Canonical(nil)
		if w.r.live == nil {
			return nil, errors.New("there is no object to scale")
		}
		live, _, err := w.liveScale()
		if err != nil {
			return nil, err
		}
		m, err := w.fieldManager(scaleKind, true)
		if err != nil {
			return nil, err
		}
		return plans.New(context.Background(), m, wrap(live), wrap(w.body), options)
	}
	kind, err := w.kind()
	if err != nil {
		return nil, err
	}
	builtin := w.isBuiltin()
	if builtin {
		options.Semantics, options.Defaulter = typed.Canonical(nil), defaults.Of(kind)
		options.Prepare, options.Validate = defaults.PrepareOf(kind), decodes(kind)
	}
	m, err := w.fieldManager(kind, !builtin)
	if err != nil {
		return nil, err
	}
	return plans.New(context.Background(), m, w.liveObject(), wrap(w.body), options)
}

// force reports whether the query says force, which any value does but false and 0.
func (w *write) force() bool {
	value := strings.ToLower(w.query.Get("force"))
	return w.query.Has("force") && value != "false" && value != "0"
}

func (w *write) applyOptions() fieldmanager.ApplyOptions {
	return fieldmanager.ApplyOptions{Manager: w.manager, Force: w.force()}
}

// checkRequest refuses a request that does not fit its path or whose options are no options of an apply.
func (w *write) checkRequest() error {
	if w.body == nil {
		return errors.New("expected an object")
	}
	options := &metav1.PatchOptions{FieldManager: w.query.Get("fieldManager"), DryRun: w.query["dryRun"]}
	if errs := metav1validation.ValidatePatchOptions(options, types.ApplyPatchType); len(errs) > 0 {
		return errs.ToAggregate()
	}
	metadata, _ := w.body["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); name != w.name {
		return fmt.Errorf("metadata.name: expected %q, got %q", w.name, name)
	}
	gvk := schema.FromAPIVersionAndKind(fmt.Sprint(w.body["apiVersion"]), fmt.Sprint(w.body["kind"]))
	if w.subresource == "scale" && gvk == scaleKind {
		return nil
	}
	isKind := gvk.GroupVersion().String() == w.gv()
	if openapi.Builtin().TypeFor(gvk) != nil {
		server, err := builtinServer()
		if err != nil {
			return err
		}
		served, err := server.Kind(gvk)
		isKind = isKind && err == nil && served.Resource.Resource == w.plural
	}
	if !isKind {
		return fmt.Errorf("kind: expected that of %s at %s, got %s", w.plural, w.gv(), gvk)
	}
	return nil
}

// builtinServer returns an API server, which knows the resources of the built-in kinds.
var builtinServer = sync.OnceValues(func() (*cluster.Cluster, error) {
	server, err := apiserver.New(context.Background(), apiserver.Options{DisableNamespaceLifecycle: true})
	if err != nil {
		return nil, err
	}
	return cluster.Local(server.LoopbackConfig())
})

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// decodes returns the validation of a plan of a built-in kind: its Go type can hold the object. What validation of
// values refuses, only a server knows.
func decodes(kind schema.GroupVersionKind) func(merged, live runtime.Object) error {
	return func(merged, _ runtime.Object) error {
		into, ok := defaults.New(kind)
		if !ok {
			return fmt.Errorf("%s: expected a built-in kind", kind)
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(unwrap(merged), into, true)
	}
}

// serverOutcome returns what a server did with an apply to live, by its response.
func (w *write) serverOutcome(live map[string]any, code int, body map[string]any) string {
	switch {
	case code == http.StatusConflict:
		if message, _ := body["message"].(string); strings.HasPrefix(message, "Operation cannot be fulfilled") {
			return preconditionFailed
		}
		return plans.Conflict.String()
	case code >= http.StatusMultipleChoices:
		return refused
	case code == http.StatusCreated || live == nil:
		return created
	}
	if w.dryRun && typed.Equal(live, body) || !w.dryRun && resourceVersion(live) == resourceVersion(body) {
		return plans.Unchanged.String()
	}
	if outcome := outcomeOf(live, body); outcome != plans.Unchanged.String() {
		return outcome
	}
	return plans.OwnershipOnly.String() // the resourceVersion says that it was written
}

// comparePlan records whether the plan of an apply agrees with what the recorded server did. Where that server has a
// fault that this one does not have, it must have failed in exactly the way that a row of doc/differences.md says.
func (w *write) comparePlan(plan planned) error {
	code, body := w.s.Response.Code, w.s.Response.Body
	live := w.r.live
	if w.subresource == "scale" && live != nil {
		var err error
		if live, _, err = w.liveScale(); err != nil {
			return err
		}
	}
	if by := w.faultOf(plan, live); by != nil {
		return w.explain(plan, by, live)
	}
	if code == http.StatusUnprocessableEntity && w.isBuiltin() && plan.got != refused {
		w.r.plan = PlanNeedsValidation
		return nil
	}
	want := w.serverOutcome(live, code, body)
	if plan.got == want {
		w.r.plan = PlanAgrees
		return nil
	}
	w.r.plan = PlanDiffers
	return fmt.Errorf("the plan's outcome is %s, the server's %s; the plan's error: %v", plan.got, want, plan.err)
}

func resourceVersion(tree map[string]any) any {
	metadata, _ := tree["metadata"].(map[string]any)
	return metadata["resourceVersion"]
}

// liveScale returns the Scale of live with its managed fields, and what puts them back.
func (w *write) liveScale() (map[string]any, *scale.Handler, error) {
	parent, err := entriesIn(w.r.live)
	if err != nil {
		return nil, nil, err
	}
	handler := scale.NewHandler(parent.Encode(), w.gv(), w.scalePaths())
	entries, err := handler.ToSubresource()
	if err != nil {
		return nil, nil, err
	}
	scale := &unstructured.Unstructured{Object: w.scaleOf(w.r.live)}
	scale.SetManagedFields(entries)
	return scale.Object, handler, nil
}
