package report_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-ssa/tenure/ownership/report"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// A report summarizes objects, here a single one, in which nobody owns one field.
func Example() {
	r := report.New(report.Options{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	r.Add(context.Background(), report.Object{Types: openapi.Builtin(), Tree: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "settings", "namespace": "default", "managedFields": []any{map[string]any{
			"manager": "alice", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:data": map[string]any{"f:color": map[string]any{}}},
		}}},
		"data": map[string]any{"color": "red", "size": "large"},
	}})
	summary := r.Summary()
	fmt.Printf("%d object, %d unowned field\n", summary.Objects, summary.Unowned.Fields)
	for _, m := range summary.Managers {
		fmt.Println(m.Name, m.Fields)
	}
	// Output:
	// 1 object, 1 unowned field
	// alice 1
}
