package blame_test

import (
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  managedFields:
  - manager: alice
    operation: Apply
    apiVersion: v1
    time: "2026-01-01T12:00:00Z"
    fieldsType: FieldsV1
    fieldsV1: {f:data: {f:colour: {}, f:size: {}}}
  - manager: bob
    operation: Update
    apiVersion: v1
    time: "2026-01-04T11:55:00Z"
    fieldsType: FieldsV1
    fieldsV1: {f:data: {f:size: {}}}
data:
  colour: red
  shape: round
  size: large
`

func ExampleText() {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(configMap), &object); err != nil {
		fmt.Println(err)
		return
	}
	report, err := blame.New(object, blame.Options{Now: time.Date(2026, 1, 4, 12, 0, 0, 0, time.UTC)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := blame.Text(os.Stdout, nil, report); err != nil {
		fmt.Println(err)
	}
	// Output:
	// MANAGER   OPERATION  AGE
	//                           │ apiVersion: v1
	//                           │ data:
	// alice     Apply      3d   │   colour: red
	// (nobody)                  │   shape: round
	// alice     Apply      3d   │   size: large
	// + bob     Update     5m   │
	//                           │ kind: ConfigMap
	//                           │ metadata:
	//                           │   name: settings
}

func ExampleNew() {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(configMap), &object); err != nil {
		fmt.Println(err)
		return
	}
	report, err := blame.New(object, blame.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range report.Lines {
		if f := line.Field(); f.State == blame.Unowned {
			fmt.Printf("line %d: nobody owns %s\n", line.Number, f.Path)
		}
	}
	for _, e := range report.Entries {
		fmt.Printf("%s owns %d fields in %d lines\n", e.Manager, e.Fields, e.Lines)
	}
	// Output:
	// line 4: nobody owns .data.shape
	// alice owns 2 fields in 2 lines
	// bob owns 1 fields in 1 lines
}
