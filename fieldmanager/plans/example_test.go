package plans_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// manifest returns the object that a YAML text describes.
func manifest(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

// settings is a ConfigMap that alice applied.
func settings() (*fieldmanager.FieldManager, *unstructured.Unstructured) {
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	live, err := writetest.Apply(m, nil, manifest(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red, size: small}
`), "alice", false)
	if err != nil {
		panic(err)
	}
	return m, live.(*unstructured.Unstructured)
}

// What would alice's next intent do?
func ExampleNew() {
	m, live := settings()
	plan, err := plans.New(context.Background(), m, live, manifest(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, shape: round}
`), plans.Options{Manager: "alice", Defaults: true, Semantics: typed.Canonical(nil)})
	if err != nil {
		panic(err)
	}
	fmt.Println(plan.Outcome)
	for c := range plan.Changes() {
		fmt.Println(c.Kind, c.Path, c.Before, "→", c.After)
	}
	for _, o := range plan.Ownership {
		fmt.Printf(
			"%s gains %s and loses %s, which is removed: %v\n", o.Manager.Manager, o.Gains, o.Loses, o.Removes.Equal(o.Loses),
		)
	}
	// Output:
	// changed
	// added .data.shape <nil> → round
	// modified .data.color red → blue
	// removed .data.size small → <nil>
	// alice gains .data.shape and loses .data.size, which is removed: true
}

// bob takes over the color, and leaves the size to alice, with one forced apply that forces nothing else.
func ExampleResolve() {
	m, live := settings()
	live.SetResourceVersion("7")
	intent := manifest(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, size: large}
`)
	rules := policy.Policy{Rules: []policy.Rule{
		{Fields: []string{".data.color"}, Decision: conflicts.Force},
		{Decision: conflicts.GiveUp},
	}}
	// These rules do not depend on the object; other rules need the metadata of the live object.
	decide := func(all conflicts.Conflicts) []conflicts.Decision { return rules.Resolve(nil, all) }
	r, err := plans.Resolve(context.Background(), m, live, intent, decide, plans.Options{Manager: "bob"})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Force, r.Intent.Object["data"], r.Intent.GetResourceVersion(), r.Plan.Outcome)
	// Output:
	// true map[color:blue] 7 changed
}
