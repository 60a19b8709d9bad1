package conflictreport_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func settings(color, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"},
		"data": map[string]any{"color": color, name: value},
	}}
}

// bob applies another color, and a field that nobody else owns.
func ExampleNew() {
	ctx := context.Background()
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	created, err := m.Apply(ctx, nil, settings("red", "size", "small"), fieldmanager.ApplyOptions{Manager: "alice"})
	if err != nil {
		panic(err)
	}
	intent := settings("blue", "shape", "round")
	report, err := conflictreport.New(ctx, m, created.Object, intent, "configmap/settings",
		plans.Options{Manager: "bob"})
	if err != nil {
		panic(err)
	}
	if err := report.Render(os.Stdout, conflictreport.Style{}); err != nil {
		panic(err)
	}
	for _, way := range report.Ways {
		fmt.Println(way.Decision, way.Force, way.Intent.Object["data"])
	}
	// Output:
	// configmap/settings: 1 conflict for manager "bob"
	//   FIELD        OWNER            THEIR VALUE  YOUR VALUE  SINCE
	//   .data.color  "alice" (Apply)  "red"        "blue"      2026-01-02T03:04:05Z
	// Ways out:
	//   force    apply again with force: your values are set, and only you own the fields
	//            "alice" loses:
	//              .data.color
	//   give up  leave the fields out of your manifest: their values and owners stay
	//   share    put the owners' values into your manifest: you and they own the fields
	// force true map[color:blue shape:round]
	// give-up false map[shape:round]
	// share false map[color:red shape:round]
}
