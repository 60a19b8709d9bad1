package workloads

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
)

// Workload is an operation that is timed with both engines.
type Workload struct {
	// Name is the name of its row in the table.
	Name string
	// V4 means that upstream is only structured-merge-diff v4.
	V4 bool
	// Prepare makes the inputs, always the same.
	Prepare func() (*Case, error)
}

// Engines returns the workload's upstream engine, and Tenure.
func (w Workload) Engines() [2]engines.Engine {
	both := engines.Both()
	if w.V4 {
		both[0] = engines.UpstreamV4()
	}
	return both
}

// Case is a workload with its inputs.
type Case struct {
	// Object is the object that is written.
	Object runtime.Object
	// Bind returns the operation with one engine.
	Bind func(engines.Engine) (Body, error)
}

// Body is one operation with one engine.
type Body struct {
	// Input returns, for each call of Run, a new object that Run may change. Input is nil if Run changes nothing. Calls
	// of Input are not timed.
	Input func() runtime.Object
	// Run runs the operation. The result is an object, bytes or a conflict; nil if there is nothing to compare.
	Run func(input runtime.Object) (any, error)
}

// applying returns a case that applies an intent to live, without force.
func applying(k engines.Kind, live runtime.Object, intent *unstructured.Unstructured, manager string) *Case {
	return &Case{live, func(e engines.Engine) (Body, error) {
		m, err := e.FieldManager(k)
		return Body{Run: func(runtime.Object) (any, error) {
			return m.Apply(live, intent, manager, false)
		}}, err
	}}
}

// conflicting returns a case with an apply that is in conflict; its result is the conflict.
func conflicting(k engines.Kind, live runtime.Object, intent *unstructured.Unstructured, manager string) *Case {
	return &Case{live, func(e engines.Engine) (Body, error) {
		m, err := e.FieldManager(k)
		return Body{Run: func(runtime.Object) (any, error) {
			_, err := m.Apply(live, intent, manager, false)
			if !apierrors.IsConflict(err) {
				return nil, fmt.Errorf("want a conflict, got %w", err)
			}
			return err, nil
		}}, err
	}}
}

// updating returns a case that updates live to updated.
func updating(k engines.Kind, live, updated runtime.Object, manager string) *Case {
	return &Case{live, func(e engines.Engine) (Body, error) {
		m, err := e.FieldManager(k)
		return Body{
			Input: func() runtime.Object { return shallow(updated) },
			Run: func(current runtime.Object) (any, error) {
				return m.Update(live, current, manager)
			},
		}, err
	}}
}

// shallow returns a copy of obj whose managed fields may be set in place.
func shallow(obj runtime.Object) runtime.Object {
	if pod, ok := obj.(*corev1.Pod); ok {
		copied := *pod
		return &copied
	}
	tree := maps.Clone(obj.(*unstructured.Unstructured).Object)
	tree["metadata"] = maps.Clone(tree["metadata"].(map[string]any))
	return &unstructured.Unstructured{Object: tree}
}
