package smdv4_test

import (
	"fmt"

	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

const serviceSchema = `types:
- name: service
  map:
    fields:
    - name: replicas
      type: {scalar: numeric}
    - name: ports
      type:
        list:
          elementRelationship: associative
          keys: [port, protocol]
          elementType: {namedType: port}
- name: port
  map:
    fields:
    - name: port
      type: {scalar: numeric}
    - name: protocol
      type: {scalar: string}
      default: TCP
    - name: name
      type: {scalar: string}
`

// oneVersion is a Converter for objects that have only one version.
type oneVersion struct{}

func (oneVersion) Convert(v *v4typed.TypedValue, _ v4fieldpath.APIVersion) (*v4typed.TypedValue, error) {
	return v, nil
}

func (oneVersion) IsMissingVersionError(error) bool { return false }

// A host that uses the types of structured-merge-diff v4 makes writes with Tenure.
func ExampleUpdater() {
	parser, err := v4typed.NewParser(serviceSchema)
	if err != nil {
		panic(err)
	}
	service := parser.Type("service")
	value := func(text v4typed.YAMLObject) *v4typed.TypedValue {
		v, err := service.FromYAML(text)
		if err != nil {
			panic(err)
		}
		return v
	}
	show := func(v *v4typed.TypedValue, managers v4fieldpath.ManagedFields, names ...string) {
		tree, err := smdv4.Tree(v)
		if err != nil {
			panic(err)
		}
		fmt.Println(oracle.JSON(tree))
		for _, name := range names {
			set, err := smdv4.FromSet(managers[name].Set())
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s: %s\n", name, set.AppendJSON(nil))
		}
	}
	updater := smdv4.Updater{Converter: oneVersion{}, ReturnInputOnNoop: true}

	// Apply.
	live, managers, err := updater.Apply(
		value(`null`), value(`{replicas: 1, ports: [{port: 80}]}`), "v1", nil, "user", false,
	)
	if err != nil {
		panic(err)
	}
	show(live, managers, "user")

	// Update: the scaler takes the replicas.
	live, managers, err = updater.Update(live, value(`{replicas: 3, ports: [{port: 80}]}`), "v1", managers, "scaler")
	if err != nil {
		panic(err)
	}
	show(live, managers, "user", "scaler")

	// Apply again: a conflict, which force resolves.
	config := value(`{replicas: 1, ports: [{port: 80, name: web}]}`)
	_, _, err = updater.Apply(live, config, "v1", managers, "user", false)
	var conflicts merge.Conflicts
	if c, ok := err.(merge.Conflicts); ok {
		conflicts = c
	}
	fmt.Println(conflicts)
	live, managers, err = updater.Apply(live, config, "v1", managers, "user", true)
	if err != nil {
		panic(err)
	}
	show(live, managers, "user")

	// ExtractApply: one more port, together with everything that was applied before.
	live, managers, err = updater.ExtractApply(live, value(`{ports: [{port: 53, protocol: UDP}]}`), "v1", managers, "user")
	if err != nil {
		panic(err)
	}
	show(live, managers, "user")

	// Output:
	// {"ports":[{"port":80}],"replicas":1}
	// user: {"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:replicas":{}}
	// {"ports":[{"port":80}],"replicas":3}
	// user: {"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}
	// scaler: {"f:replicas":{}}
	// conflict with "scaler": .replicas
	// {"ports":[{"name":"web","port":80}],"replicas":1}
	// user: {"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}},"f:replicas":{}}
	// {"ports":[{"name":"web","port":80},{"port":53,"protocol":"UDP"}],"replicas":1}
	// user: {"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}},"f:replicas":{}}
}

// The leaves of an entry's set extract the intent of its manager.
func ExampleUpdater_ExtractItems() {
	parser, err := v4typed.NewParser(serviceSchema)
	if err != nil {
		panic(err)
	}
	live, err := parser.Type("service").FromYAML(`{replicas: 3, ports: [{port: 80, name: web}, {port: 53}]}`)
	if err != nil {
		panic(err)
	}
	owned := v4fieldpath.NewSet(
		v4fieldpath.MakePathOrDie("ports", v4fieldpath.KeyByFields("port", 80, "protocol", "TCP"), "name"),
	)
	updater := smdv4.Updater{}
	extracted, err := updater.ExtractItems(live, owned, true)
	if err != nil {
		panic(err)
	}
	tree, err := smdv4.Tree(extracted)
	if err != nil {
		panic(err)
	}
	fmt.Println(oracle.JSON(tree))
	// Output: {"ports":[{"name":"web","port":80}]}
}
