package fieldmanager_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func manifest(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		panic(err)
	}
	return u
}

// Two managers apply to one ConfigMap. The second may add fields, but may not change a field of the first.
func Example() {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{Clock: clock})
	if err != nil {
		panic(err)
	}

	live, err := writetest.Apply(m, nil, manifest(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
`), "alice", false)
	if err != nil {
		panic(err)
	}

	intent := manifest(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, size: large}
`)
	_, err = writetest.Apply(m, live, intent, "bob", false)
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		for _, c := range conflicting {
			fmt.Printf("%s of %s: %v, not %v\n", c.Path, c.Owner.Manager, c.Live, c.Applied)
		}
	}

	live, err = writetest.Apply(m, live, intent, "bob", true)
	if err != nil {
		panic(err)
	}
	u := live.(*unstructured.Unstructured)
	fmt.Println(u.Object["data"])
	for _, e := range u.GetManagedFields() {
		fmt.Println(e.Manager, e.FieldsV1.String())
	}
	// Output:
	// .data.color of alice: red, not blue
	// map[color:blue size:large]
	// bob {"f:data":{"f:color":{},"f:size":{}}}
}

// A server tracks every write that is not an apply. The manager owns the fields that it changed.
func ExampleFieldManager_Update() {
	m, err := fieldmanager.New(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, openapi.Builtin(),
		fieldmanager.Options{})
	if err != nil {
		panic(err)
	}
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
	live, err := writetest.Apply(m, nil, manifest(settings+"data: {color: red, size: large}"), "alice", false)
	if err != nil {
		panic(err)
	}
	edited := manifest(settings + "data: {color: blue, size: large}") // starts from live's managed fields
	result, err := m.Update(context.Background(), live, edited, fieldmanager.UpdateOptions{Manager: "editor"})
	if err != nil {
		panic(err)
	}
	entries, err := managedfields.Read(result.Object)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		fmt.Println(e.Key, e.Owned())
	}
	// Output:
	// "alice" (Apply) .data.size
	// "editor" (Update) .data.color
}
