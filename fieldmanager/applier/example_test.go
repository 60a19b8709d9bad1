package applier_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// A controller applies the same intent again and again. It sends applies until the server returns the object unchanged.
func Example() {
	manager, err := fieldmanager.New(
		schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		openapi.Builtin(),
		fieldmanager.Options{},
	)
	if err != nil {
		panic(err)
	}
	// A controller would use client-go's dynamic client. The server of this example stores one object.
	server := &server{live: configMap(map[string]any{"other": "1"})}
	a := applier.New(manager, applier.Options{Manager: "my-controller"})
	for _, value := range []string{"x", "x", "x", "x", "y"} {
		intent := configMap(map[string]any{"key": value})
		result, err := a.Apply(context.Background(), server, server.live, intent)
		if err != nil {
			panic(err)
		}
		fmt.Println("skipped", result.Skipped, "data", result.Object.(*unstructured.Unstructured).Object["data"])
	}
	fmt.Printf("%+v\n", a.Stats())
	// Output:
	// skipped false data map[key:x other:1]
	// skipped false data map[key:x other:1]
	// skipped true data map[key:x other:1]
	// skipped true data map[key:x other:1]
	// skipped false data map[key:y other:1]
	// {Skipped:2 Sent:3 Resolved:0 Conflicts:0 Failed:0}
}
