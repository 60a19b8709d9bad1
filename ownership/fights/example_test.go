package fights_test

import (
	"fmt"
	"time"

	"github.com/tenure-ssa/tenure/ownership/fights"
)

// Two managers revert each other's value: an autoscaler, and a GitOps tool whose manifest contains the replicas.
func Example() {
	start := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	tracker := fights.New(fights.Options{})
	for i := range 5 { // as the events of a watch
		manager, replicas := "autoscaler", int64(5)
		if i%2 == 0 {
			manager, replicas = "gitops", 2
		}
		when := start.Add(time.Duration(i) * time.Second)
		object := map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{
				"name": "web", "namespace": "default", "uid": "1", "resourceVersion": fmt.Sprint(i),
				"managedFields": []any{map[string]any{
					"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": when.Format(time.RFC3339),
					"fieldsType": "FieldsV1",
					"fieldsV1":   map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
				}},
			},
			"spec": map[string]any{"replicas": replicas},
		}
		for _, finding := range tracker.Observe(object, when) {
			fmt.Println(finding)
		}
	}
	// Output:
	// default/Deployment/web: .spec.replicas: autoscaler sets 5, gitops sets 2; put back 3 times
}
