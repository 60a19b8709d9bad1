package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// fault is how kube-apiserver fails an apply that Tenure accepts, as a row of doc/differences.md says.
type fault struct {
	// difference is the number of the row.
	difference int
	// status is the whole response of kube-apiserver.
	status metav1.Status
}

// Rows of doc/differences.md.
const (
	// An empty map or list that becomes null fails the validation of a custom resource.
	emptyToNull = 1
	// An apply to /scale of a custom resource fails.
	scaleOfCustom = 28
)

// faultOf predicts the fault by which kube-apiserver fails an apply to live; nil if it does not. It knows the plan, and
// not the response.
func (w *write) faultOf(plan planned, live map[string]any) *fault {
	if plan.err != nil || w.crd() == nil {
		return nil
	}
	if w.subresource == "scale" {
		return w.scaleFault(plan, live)
	}
	return w.nullFault(plan)
}

// scaleFault is difference 28. kube-apiserver first makes an unstructured Scale to find who owned the fields of a Scale
// without managed fields, and later to hold the merged Scale. Its converter refuses both. The second is not reached if
// there are conflicts, or if the replicas stay as they are.
func (w *write) scaleFault(plan planned, live map[string]any) *fault {
	var failed string
	entries, err := entriesIn(live)
	switch {
	case err == nil && len(entries) == 0:
		failed = "failed to create manager for existing fields: failed to convert live object (/; " + scaleKindText + ")"
	case plan.got != plans.Changed.String():
		return nil
	default:
		failed = fmt.Sprintf("failed to convert new object (%s/%s; %s)", w.namespace, w.name, scaleKindText)
	}
	return &fault{scaleOfCustom, metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: failed + " to proper version: request to convert CR to an invalid group/version: autoscaling/v1",
	}}
}

const scaleKindText = "autoscaling/v1, Kind=Scale"

// nullFault is difference 1. Containers that the removal emptied are null on kube-apiserver, and its validation rejects
// those that are not nullable.
func (w *write) nullFault(plan planned) *fault {
	if plan.merged == nil || w.r.live == nil || plan.got == plans.Conflict.String() {
		return nil
	}
	kind, err := w.kind()
	if err != nil {
		return nil
	}
	version, err := w.crd().version(w.version)
	t := w.r.types.TypeFor(kind)
	if err != nil || t == nil {
		return nil
	}
	removed := t.Compare(w.r.live, plan.merged).Removed
	withNulls, ok := t.RemoveToNull(plan.merged, removed).(map[string]any)
	if !ok {
		return nil
	}
	errs := version.nulled(plan.merged, withNulls)
	if len(errs) == 0 {
		return nil
	}
	status := apierrors.NewInvalid(kind.GroupKind(), w.name, errs).Status()
	return &fault{emptyToNull, status}
}

// nulled returns kube-apiserver's errors for the containers of object that are null in withNulls, and that are neither
// nullable nor have a default.
func (v crdVersion) nulled(object, withNulls map[string]any) (errs field.ErrorList) {
	schema, _ := v.tree["schema"].(map[string]any)
	root, _ := schema["openAPIV3Schema"].(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name != "metadata" { // a Go struct
			errs = append(errs, nulledValue(object[name], withNulls[name], properties[name], field.NewPath(name))...)
		}
	}
	return errs
}

func nulledValue(v, withNulls, schema any, at *field.Path) (errs field.ErrorList) {
	s, _ := schema.(map[string]any)
	isNull := func(what string) field.ErrorList {
		if _, ok := s["default"]; ok || s["nullable"] == true || s["type"] != what {
			return nil
		}
		detail := fmt.Sprintf(`%s in body must be of type %s: "null"`, at, what)
		return field.ErrorList{field.TypeInvalid(at, "null", detail)}
	}
	switch t := v.(type) {
	case map[string]any:
		now, ok := withNulls.(map[string]any)
		if !ok {
			return isNull("object")
		}
		properties, _ := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(t)) {
			sub, declared := properties[name]
			if !declared {
				sub = s["additionalProperties"]
			}
			errs = append(errs, nulledValue(t[name], now[name], sub, at.Child(name))...)
		}
	case []any:
		now, ok := withNulls.([]any)
		if !ok {
			return isNull("array")
		}
		for i := range min(len(t), len(now)) {
			errs = append(errs, nulledValue(t[i], now[i], s["items"], at.Index(i))...)
		}
	}
	return errs
}

// explain compares a plan with a fault of the recorded server. The recorded response must be the fault's, whole. What
// the plan says must be what the engine does with the apply.
func (w *write) explain(plan planned, by *fault, live map[string]any) error {
	w.r.plan = PlanDiffers
	by.status.Kind, by.status.APIVersion = "Status", "v1"
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&by.status)
	if err != nil {
		return err
	}
	if code, body := w.s.Response.Code, w.s.Response.Body; code != int(by.status.Code) || !typed.Equal(want, body) {
		return fmt.Errorf("difference %d: response %d\n%s", by.difference, code, diff(render(body), render(want)))
	}
	outcome, err := w.applied(live)
	if err != nil {
		return fmt.Errorf("difference %d: the plan's outcome is %s, and the apply fails: %w", by.difference, plan.got, err)
	}
	if plan.got != outcome {
		return fmt.Errorf("difference %d: the plan's outcome is %s, the engine's %s", by.difference, plan.got, outcome)
	}
	w.r.plan, w.r.difference = PlanExplained, by.difference
	return nil
}

// applied returns the outcome of an apply to live by the engine, with what a server does before it stores the object.
func (w *write) applied(live map[string]any) (string, error) {
	kind, err := w.kind()
	if w.subresource == "scale" {
		kind = scaleKind
	}
	if err != nil {
		return "", err
	}
	m, err := w.fieldManager(kind, true)
	if err != nil {
		return "", err
	}
	merged, err := m.Apply(context.Background(), wrap(live), wrap(w.body), w.applyOptions())
	var conflicting conflicts.Conflicts
	switch {
	case errors.As(err, &conflicting):
		return plans.Conflict.String(), nil
	case err != nil:
		return "", err
	case w.subresource == "scale":
		return outcomeOf(live, unwrap(merged.Object)), nil
	}
	tree := w.settleTimes(kind, unwrap(merged.Object))
	return outcomeOf(live, managedfields.With(w.complete(kind, w.reset(tree)), managedFieldsIn(tree))), nil
}

// outcomeOf returns what became of live, by both objects.
func outcomeOf(live, now map[string]any) string {
	if typed.Equal(live, now) {
		return plans.Unchanged.String()
	}
	before, after := stripped(live), stripped(now)
	before["apiVersion"] = after["apiVersion"] // live may have been written at another version
	if typed.Equal(before, after) {
		return plans.OwnershipOnly.String()
	}
	return plans.Changed.String()
}
