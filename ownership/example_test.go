package ownership_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
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

const nginx = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
  resourceVersion: "7"
  uid: 0ab4f1b2
  managedFields:
  - {manager: alice, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}, "f:paused": {}}}}
spec: {replicas: 3, paused: false}
`

// alice transfers the replicas to bob. The object's values do not change. What happens next depends on the next
// intents of both.
func Example() {
	live := manifest(nginx)
	replicas, err := fieldpath.Parse([]byte(`{"f:spec": {"f:replicas": {}}}`))
	if err != nil {
		panic(err)
	}
	result, err := ownership.Mover{Types: openapi.Builtin()}.Do(context.Background(), live, ownership.Transfer{
		Fields: replicas,
		From:   managedfields.Key{Manager: "alice"},
		To:     managedfields.Key{Manager: "bob"},
	})
	if err != nil {
		panic(err)
	}
	for _, c := range result.Changes {
		fmt.Printf("%s gains [%s] and loses [%s]\n", c.Manager.Manager, c.Gains, c.Loses)
	}
	for _, n := range result.Next {
		fmt.Printf("the next apply of %s deletes [%s] and regains [%s]\n", n.Manager.Manager, n.Deletes, n.Regains)
	}
	patch, err := result.Patch()
	if err != nil {
		panic(err)
	}
	fmt.Println(string(patch))
	// Output:
	// alice gains [] and loses [.spec.replicas]
	// bob gains [.spec.replicas] and loses []
	// the next apply of alice deletes [] and regains [.spec.replicas]
	// the next apply of bob deletes [.spec.replicas] and regains []
	// [{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"alice","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:paused":{}}}},{"manager":"bob","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},{"op":"replace","path":"/metadata/resourceVersion","value":"7"}]
}

// An autoscaler is to scale alice's Deployment.
func ExampleMover_Handover() {
	live := manifest(nginx)
	intent := manifest(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec: {replicas: 3, paused: false}
`)
	replicas := fieldpath.NewSet(fieldpath.NewPath("spec", "replicas"))
	steps, err := ownership.Mover{Types: openapi.Builtin()}.
		Handover(context.Background(), live, intent, "alice", replicas, "handover-to-hpa")
	if err != nil {
		panic(err)
	}
	for _, step := range steps {
		fmt.Println(step.Manager, "applies", step.Intent.Object["spec"], "outcome:", step.Plan.Outcome)
	}
	// Output:
	// handover-to-hpa applies map[replicas:3] outcome: ownership only
	// alice applies map[paused:false] outcome: ownership only
}
