package fieldpath_test

import (
	"fmt"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func ExampleParse() {
	set, err := fieldpath.Parse([]byte(`{"f:spec": {"f:replicas": {}, "f:paused": {}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Has(fieldpath.NewPath("spec", "replicas")))
	fmt.Println(set.Has(fieldpath.NewPath("spec")))
	fmt.Println(string(set.AppendJSON(nil)))

	_, err = fieldpath.Parse([]byte(`{"f:spec": {"replicas": {}}}`))
	fmt.Println(err)
	// Output:
	// true
	// false
	// {"f:spec":{"f:paused":{},"f:replicas":{}}}
	// fieldsV1 at .spec, byte 12: member "replicas" does not begin with f:, k:, v: or i:
}

func ExampleSet() {
	mine := fieldpath.NewSet(fieldpath.NewPath("spec", "replicas"), fieldpath.NewPath("spec", "paused"))
	yours := fieldpath.NewSet(fieldpath.NewPath("spec", "replicas"), fieldpath.NewPath("metadata", "labels", "app"))

	fmt.Println("shared:", mine.Intersection(yours))
	fmt.Println("only mine:", mine.Difference(yours))
	fmt.Println("all:", mine.Union(yours).Len())
	// Output:
	// shared: .spec.replicas
	// only mine: .spec.paused
	// all: 3
}

func ExampleSet_RecursiveDifference() {
	set := fieldpath.NewSet(fieldpath.NewPath("spec", "replicas"), fieldpath.NewPath("status", "replicas"))
	status := fieldpath.NewSet(fieldpath.NewPath("status"))

	fmt.Println(set.Difference(status).Len())
	fmt.Println(set.RecursiveDifference(status))
	// Output:
	// 2
	// .spec.replicas
}

func ExampleSet_All() {
	set := fieldpath.NewSet(fieldpath.NewPath("a", "b"), fieldpath.NewPath("c"), fieldpath.NewPath("a"))
	for path := range set.All() {
		fmt.Println(path)
	}
	// Output:
	// .a
	// .c
	// .a.b
}

func ExampleParsePath() {
	path, err := fieldpath.ParsePath(`.data["tls.crt"]`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(path.Equal(fieldpath.NewPath("data", "tls.crt")))
	fmt.Println(path)
	fmt.Println(path.CauseText())

	_, err = fieldpath.ParsePath(`.data..tls`)
	fmt.Println(err)
	// Output:
	// true
	// .data["tls.crt"]
	// .data.tls.crt
	// path ".data..tls", byte 6: expected a name; one that is empty, or has dots or brackets, is written as ["name"]
}

func ExampleSet_Find() {
	set := fieldpath.NewSet(fieldpath.NewPath("data", ".hidden"), fieldpath.NewPath("data", "plain"))
	fmt.Println(set.Find(`.data[".hidden"]`))
	fmt.Println(set.Find(`.data..hidden`)) // as a server names it in a conflict
	fmt.Println(set.Find(`data`))
	// Output:
	// [.data[".hidden"]]
	// [.data[".hidden"]]
	// [.data]
}

func ExamplePath_String() {
	path := append(fieldpath.NewPath("spec", "ports"),
		fieldpath.KeyElement(
			fieldpath.KeyField{Name: "protocol", Value: "TCP"},
			fieldpath.KeyField{Name: "port", Value: 80},
		),
		fieldpath.FieldElement("targetPort"))
	fmt.Println(path)
	fmt.Println(append(fieldpath.NewPath("finalizers"), fieldpath.ValueElement("example.com/hold")))
	// Output:
	// .spec.ports[port=80,protocol="TCP"].targetPort
	// .finalizers[="example.com/hold"]
}
