package recorded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// A replayer compares the response of a server with a recorded one, except for generated values.
func Example() {
	server, err := apiserver.New(context.Background(), apiserver.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	config := server.LoopbackConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		log.Fatal(err)
	}
	replayer := recorded.OfClient(client, config.Host)
	answer, err := replayer.Ask(recorded.Request{Method: "GET", Target: "/api/v1/namespaces/default"})
	if err != nil {
		log.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(answer.Body, &got); err != nil {
		log.Fatal(err)
	}
	want := map[string]any{
		"kind": "Namespace", "apiVersion": "v1",
		"metadata": map[string]any{
			"name": "default", "uid": "0b62c2dc-5bb5-4ac1-8bbc-f9d2e0d11be0", "resourceVersion": "20",
			"creationTimestamp": "2026-01-02T03:04:05Z",
			"labels":            map[string]any{"kubernetes.io/metadata.name": "default"},
			"managedFields": []any{map[string]any{
				"manager": "kube-apiserver", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": map[string]any{
					"f:labels": map[string]any{".": map[string]any{}, "f:kubernetes.io/metadata.name": map[string]any{}},
				}},
			}},
		},
		"spec":   map[string]any{"finalizers": []any{"kubernetes"}},
		"status": map[string]any{"phase": "Terminating"},
	}
	fmt.Println(answer.Code, replayer.Difference(got, want))
	// Output: 200 [.status.phase is "Active", want "Terminating"]
}
