package fieldmanagertest_test

import (
	"fmt"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
)

// exampleT replaces the *testing.T that an example does not have.
type exampleT struct{}

func (exampleT) Helper()                           {}
func (exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (exampleT) FailNow()                          { panic("failed") }

// An autoscaler takes over a field by force.
func Example() {
	t := exampleT{}
	h := fieldmanagertest.New(
		t, fieldmanagertest.WithSchema(`spec: {type: object, properties: {replicas: {type: integer}}}`),
	)
	h.Do(fieldmanagertest.Apply("alice", `spec: {replicas: 3}`))

	scale := fieldmanagertest.Apply("hpa", `spec: {replicas: 5}`)
	fmt.Println(h.Do(scale).Err)
	fmt.Println(h.Do(scale.Force()).Changed)
	h.RequireOwner(".spec.replicas", "hpa")
	// Output:
	// Apply failed with 1 conflict: conflict with "alice": .spec.replicas
	// true
}

// Two appliers and an updater write to one list. The result depends on the order of their writes.
func ExampleHarness_Interleave() {
	h := fieldmanagertest.New(exampleT{}, fieldmanagertest.WithSchema(`
spec:
  type: object
  properties:
    ports:
      type: array
      x-kubernetes-list-type: map
      x-kubernetes-list-map-keys: [name]
      items: {type: object, properties: {name: {type: string}, port: {type: integer}}}
`))
	report := h.Interleave(fieldmanagertest.Sample{},
		[]fieldmanagertest.Write{fieldmanagertest.Apply("alice", `spec: {ports: [{name: http, port: 80}]}`)},
		[]fieldmanagertest.Write{fieldmanagertest.Apply("bob", `spec: {ports: [{name: dns, port: 53}]}`)},
		[]fieldmanagertest.Write{fieldmanagertest.Update("ctl", `spec: {ports: [{name: http, port: 8080}]}`)},
	)
	for _, order := range report.Orders {
		fmt.Println(order)
	}
	fmt.Println("converges:", report.Converges())
	fmt.Println(report.Diverging[0].Writes, "ends otherwise than", report.Diverging[1].Writes)
	// Output:
	// alice bob ctl: object 1, owners 1
	// alice ctl bob: object 2, owners 2
	// bob alice ctl: object 1, owners 1
	// bob ctl alice: object 1, owners 3, alice in conflict with ctl over .spec.ports[name="http"].port
	// ctl alice bob: object 2, owners 4, alice in conflict with ctl over .spec.ports[name="http"].port
	// ctl bob alice: object 2, owners 4, alice in conflict with ctl over .spec.ports[name="http"].port
	// converges: false
	// [alice bob ctl] ends otherwise than [alice ctl bob]
}

// Managers that write only their own fields have the same result in any order.
func ExampleHarness_Interleave_converges() {
	h := fieldmanagertest.New(exampleT{}, fieldmanagertest.WithSchema(`
spec: {type: object, properties: {a: {type: integer}, b: {type: integer}}}
status: {type: object, properties: {ready: {type: boolean}}}
`))
	h.Do(fieldmanagertest.Apply("admin", `metadata: {labels: {app: web}}`))
	fmt.Print(h.Interleave(fieldmanagertest.Sample{},
		[]fieldmanagertest.Write{
			fieldmanagertest.Apply("alice", `spec: {a: 1}`), fieldmanagertest.Apply("alice", `spec: {a: 2}`),
		},
		[]fieldmanagertest.Write{fieldmanagertest.Patch("ctl", `status: {ready: true}`).Through("status")},
	))
	// Output:
	// 3 of 3 orders run; they converge: 1 object, 1 set of owners; 0 orders with conflicts
	//   alice.1 alice.2 ctl: object 1, owners 1
	//   alice.1 ctl alice.2: object 1, owners 1
	//   ctl alice.1 alice.2: object 1, owners 1
}
