package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// request is a request of a client.
type request struct {
	method, path, contentType string
	body                      []byte
}

// workload is one kind of request.
type workload struct {
	name string
	// watches is the number of watches of Deployments during the workload.
	watches int
	// setUp, if not nil, returns the request that creates the object called name. One such request is sent for each
	// object.
	setUp func(name string) request
	// request returns a client's n-th request, which is for the object called name.
	request func(name string, n int) request
}

const (
	deployments   = "/apis/apps/v1/namespaces/default/deployments/"
	pods          = "/api/v1/namespaces/default/pods"
	definitions   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.bench.example"
	widgetObjects = "/apis/bench.example/v1/namespaces/default/widgets/"
	forced        = "?fieldManager=bench&force=true"
)

// created counts created objects, so that their names differ.
var created atomic.Int64

var (
	deploymentIntent = marked(deploymentBody())
	deploymentStatus = marked(statusBody())
	podBody          = marked(podToCreate())
	// widgetIntent is made only when it is needed, because the memory of servers in this process is measured.
	widgetIntent = sync.OnceValue(func() body { return marked(widget()) })
)

var workloads = []workload{
	{"apply that changes nothing", 0, applyDeployment,
		func(name string, _ int) request { return applyDeployment(name) }},
	{"apply that changes a label", 0, applyDeployment, changeLabel},
	{"apply that changes a label, and 100 watches", 100, applyDeployment, changeLabel},
	{"update of the status", 0, applyDeployment, func(name string, n int) request {
		return request{http.MethodPut, deployments + name + "/status?fieldManager=controller", "application/json",
			deploymentStatus.with(name, n)}
	}},
	{"create of a Pod", 0, nil, func(string, int) request {
		return request{http.MethodPost, pods + "?fieldManager=bench", "application/json",
			podBody.with(fmt.Sprintf("pod-%d", created.Add(1)), 0)}
	}},
	{"list of all Deployments", 0, applyDeployment,
		func(string, int) request { return request{http.MethodGet, deployments, "", nil} }},
	{"apply of a CustomResourceDefinition that changes nothing", 0, applyDefinition,
		func(name string, _ int) request { return applyDefinition(name) }},
	{"apply that changes one of 1,000 items of a custom resource", 0, applyWidget, func(name string, n int) request {
		r := applyWidget(name)
		r.body = widgetIntent().with(name, n)
		return r
	}},
}

func changeLabel(name string, n int) request {
	r := applyDeployment(name)
	r.body = deploymentIntent.with(name, n)
	return r
}

func applyDeployment(name string) request {
	return request{http.MethodPatch, deployments + name + forced, string(types.ApplyPatchType),
		deploymentIntent.with(name, 0)}
}

func applyDefinition(string) request {
	return request{http.MethodPatch, definitions + forced, string(types.ApplyPatchType), []byte(widgets)}
}

func applyWidget(name string) request {
	return request{http.MethodPatch, widgetObjects + name + forced, string(types.ApplyPatchType),
		widgetIntent().with(name, 0)}
}

// body is a request's body, split where the name and the number of a write are inserted.
type body [][]byte

// with returns the body with a name and a number.
func (b body) with(name string, n int) []byte {
	out := bytes.Join(b, []byte(name))
	return bytes.ReplaceAll(out, []byte(number), fmt.Appendf(nil, "%09d", n%1_000_000_000))
}

// name and number are the placeholders in a body for the name and number of a write.
const (
	nameMark = "name-of-object"
	number   = "number-of-write"
)

// marked returns the JSON of a value that contains placeholders.
func marked(v any) body {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the value is a constant of this program
	}
	return bytes.Split(data, []byte(nameMark))
}

// deploymentBody returns a Deployment as people write it, without defaults.
func deploymentBody() any {
	d := objects.Intent(objects.Deployment())
	d.SetNamespace("default")
	d.SetName(nameMark)
	objects.Set(d, "n"+number, "metadata", "labels", "bench")
	app := objects.Item(d, "name", "app", "spec", "template", "spec", "containers")
	app["env"] = []any{map[string]any{
		"name": "POD_NAME", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}},
	}}
	app["resources"] = map[string]any{"limits": map[string]any{"memory": "1024Mi"}}
	return d.Object
}

// statusBody returns the whole object, as a controller sends it.
func statusBody() any {
	d := objects.Deployment()
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields"} {
		delete(d.Object["metadata"].(map[string]any), field)
	}
	d.SetNamespace("default")
	d.SetName(nameMark)
	conditions := d.Object["status"].(map[string]any)["conditions"].([]any)
	conditions[0].(map[string]any)["message"] = "write " + number
	return d.Object
}

// podToCreate returns a Pod without the fields that only a cluster sets.
func podToCreate() any {
	pod := objects.Intent(objects.Pod())
	pod.SetNamespace("default")
	pod.SetGenerateName("")
	pod.SetName(nameMark)
	spec := pod.Object["spec"].(map[string]any)
	for _, field := range []string{"priorityClassName", "nodeName"} {
		delete(spec, field)
	}
	spec["automountServiceAccountToken"] = false
	return pod.Object
}

func widget() any {
	var items []any
	for i := range 1000 {
		item := map[string]any{"name": fmt.Sprintf("item-%04d", i), "value": i, "text": "some text"}
		if i == 500 {
			item["text"] = "write " + number
		}
		items = append(items, item)
	}
	return map[string]any{
		"apiVersion": "bench.example/v1", "kind": "Widget",
		"metadata": map[string]any{"name": nameMark, "namespace": "default"},
		"spec":     map[string]any{"items": items},
	}
}

const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"widgets.bench.example"},"spec":{"group":"bench.example","scope":"Namespaced",
"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"items":{"type":"array","x-kubernetes-list-type":"map",
"x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{
"name":{"type":"string"},"value":{"type":"integer"},"text":{"type":"string"}}}}}}}}}}]}}`
