package fieldmanager_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

const recipes = `
components: {schemas: {Recipe: {
  type: object, x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Recipe}],
  properties: {servings: {type: integer}, notes: {type: string}, rating: {type: integer}}}}}`

// A host without Kubernetes has a schema of its own, and a map as store.
func Example_host() {
	types, err := openapi.CompileV3([]byte(recipes), openapi.Complete)
	if err != nil {
		panic(err)
	}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Recipe"}
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) } // nil means time.Now
	m, err := fieldmanager.New(kind, types, fieldmanager.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	h := host{m, map[string]runtime.Object{}}
	h.write("cook", "apply", "servings: 2, notes: hot")
	h.write("guest", "apply", "servings: 4") // is in conflict with the cook
	h.write("guest", "force", "servings: 4")
	h.write("cook", "apply", "") // drops the notes, which only the cook owned
	h.write("app", "update", "servings: 4, rating: 5")

	report, err := blame.New(h.stored["soup"].(*unstructured.Unstructured).Object, blame.Options{})
	if err == nil {
		err = blame.Text(os.Stdout, nil, report)
	}
	if err != nil {
		panic(err)
	}
	// Output:
	// cook apply: changed
	// guest apply: Apply failed with 1 conflict: conflict with "cook": .servings
	// guest force: changed; taken: .servings of "cook"
	// cook apply: changed
	// app update: changed
	// MANAGER  OPERATION  TIME
	//                                           │ apiVersion: example.com/v1
	//                                           │ kind: Recipe
	//                                           │ metadata:
	//                                           │   name: soup
	// app      Update     2026-01-02T03:04:05Z  │ rating: 5
	// guest    Apply      2026-01-02T03:04:05Z  │ servings: 4
}

type host struct {
	m      *fieldmanager.FieldManager
	stored map[string]runtime.Object // by name; a missing one has to be a nil interface
}

// write does what an HTTP handler does with a request. It prints the response.
func (h host) write(manager, verb, fields string) {
	text := "{apiVersion: example.com/v1, kind: Recipe, metadata: {name: soup}, " + fields + "}"
	given := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(text), &given.Object)
	live := h.stored[given.GetName()] // nil if there is no such object yet
	var result fieldmanager.Result
	switch {
	case err != nil:
	case verb == "update":
		result, err = h.m.Update(context.Background(), live, given, fieldmanager.UpdateOptions{Manager: manager})
	default:
		options := fieldmanager.ApplyOptions{Manager: manager, Force: verb == "force"}
		result, err = h.m.Apply(context.Background(), live, given, options)
	}
	if err != nil { // apierrors.IsConflict(err) reports a conflict, and errors.As finds its conflicts.Conflicts
		fmt.Printf("%s %s: %v\n", manager, verb, err)
		return
	}
	if !result.IsNoOp() {
		h.stored[given.GetName()] = result.Object
	}
	fmt.Printf("%s %s: %v\n", manager, verb, result)
}
