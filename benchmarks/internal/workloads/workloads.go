package workloads

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// The manager names in the histories.
const (
	applier = "deployer"
	updater = "kubelet"
)

// All returns the workloads in the order of the table.
func All() []Workload {
	return append([]Workload{
		{Name: "Pod: apply, no-op", Prepare: podApply(engines.Pod, nil)},
		{Name: "Pod: apply, one field changes", Prepare: podApply(engines.Pod, newImage)},
		{Name: "Pod: apply, one field is dropped", Prepare: podApply(engines.Pod, withoutArgs)},
		{Name: "Pod: apply, one field changes, canonical semantics", Prepare: podApply(engines.Pod.Canonically(), newImage)},
		{Name: "Pod: status update by another manager", Prepare: podUpdate(engines.Pod.Status(), "node-agent", podReady)},
		{Name: "Pod: update, nothing changes", Prepare: podUpdate(engines.Pod, applier, nil)},
		{Name: "Pod: first apply", Prepare: podFirstApply(engines.Pod)},
		{Name: "Node: heartbeat", Prepare: nodeHeartbeat},
		{Name: "Deployment: conflict with two managers", Prepare: deploymentConflict},
		{Name: "Pod (Go struct): apply, no-op", Prepare: podApply(engines.Pod.AsStruct(), nil)},
		{Name: "Pod (Go struct): apply, one field changes", Prepare: podApply(engines.Pod.AsStruct(), newImage)},
		{Name: "Pod (Go struct): apply, one field is dropped", Prepare: podApply(engines.Pod.AsStruct(), withoutArgs)},
		{Name: "Pod (Go struct): first apply", Prepare: podFirstApply(engines.Pod.AsStruct())},
		{Name: "Pod (Go struct): status update", Prepare: podUpdate(engines.Pod.AsStruct().Status(), "node-agent", podReady)},
		{Name: "Pod (Go struct): update, one field is removed", Prepare: podUpdate(engines.Pod.AsStruct(), updater,
			withoutArgs)},
		{Name: "Pod (Go struct): create", Prepare: structCreate},
		{Name: "Endpoints, 150 KB: apply, no-op", Prepare: endpointsApply},
		{Name: "Endpoints, 150 KB: one annotation changes", Prepare: endpointsUpdate},
		{Name: "CustomResourceDefinition, 300 KB: apply, no-op", Prepare: crdApply},
		{Name: "CustomResourceDefinition, 1.4 MB: compile", Prepare: compileCRD},
		{Name: "10,000 items: apply, no-op", Prepare: fleetApply(inOrder, inOrder)},
		{Name: "10,000 shuffled items: apply, no-op", Prepare: fleetApply(objects.Shuffled, objects.Shuffled)},
		{Name: "10,000 items: apply in another order", Prepare: fleetApply(inOrder, objects.Shuffled)},
		{Name: "10,000 items, other alphabets: apply, no-op", Prepare: fleetApply(objects.OtherAlphabets,
			objects.OtherAlphabets)},
		{Name: "10,000 items, other alphabets: one is dropped", Prepare: fleetApply(objects.OtherAlphabets, withoutLast)},
		{Name: "10,000 items, 100 managers: apply of 100, no-op", Prepare: func() (*Case, error) {
			return managers(ListSize, 100, ListSize/100)
		}},
		{Name: "10,000 items: update, one label changes", Prepare: fleetUpdate},
		{Name: "200 items, 100 managers: apply, no-op", Prepare: func() (*Case, error) { return managers(200, 100, 2) }},
		{Name: "FieldsV1 of a Pod: decode", Prepare: decodeSet},
		{Name: "FieldsV1 of a Pod: encode", Prepare: encodeSet},
		{Name: "FieldsV1 of a Pod: decode (v4)", Prepare: decodeSet, V4: true},
		{Name: "FieldsV1 of a Pod: encode (v4)", Prepare: encodeSet, V4: true},
		{Name: "managedFields of a Pod seen before: decode", Prepare: decodeEntries},
	}, inAlphabets()...)
}

// livePod returns a Pod that one manager applied, and whose status another manager updates.
func livePod() (*unstructured.Unstructured, error) {
	return stored(engines.Pod, objects.Pod(), applier, updater)
}

// podOf returns [livePod] with a change, as a Go struct or unstructured, depending on k. A Go struct has its apiVersion
// and kind: typed objects in a server do not have them, but both engines need them.
func podOf(k engines.Kind, change func(*unstructured.Unstructured)) (runtime.Object, error) {
	pod, err := livePod()
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(pod)
	}
	if k.Struct {
		return objects.Struct[corev1.Pod](pod), nil
	}
	return objects.Fresh(pod), nil
}

// newImage changes one field of a Pod.
func newImage(pod *unstructured.Unstructured) {
	objects.Item(pod, "name", "app", "spec", "containers")["image"] = "registry.example.dev/shop/checkout:2.14.4"
}

// withoutArgs removes one field of a Pod, which only the applier owns.
func withoutArgs(pod *unstructured.Unstructured) {
	delete(objects.Item(pod, "name", "app", "spec", "containers"), "args")
}

func podApply(k engines.Kind, change func(intent *unstructured.Unstructured)) func() (*Case, error) {
	return func() (*Case, error) {
		live, err := podOf(k, nil)
		intent := objects.Intent(objects.Pod())
		if change != nil {
			change(intent)
		}
		return applying(k, live, intent, applier), err
	}
}

// podReady makes the changes that occur when a Pod is no longer ready.
func podReady(pod *unstructured.Unstructured) {
	ready := objects.Item(pod, "type", "Ready", "status", "conditions")
	ready["status"], ready["reason"], ready["lastTransitionTime"] = "False", "ContainersNotReady", "2026-01-07T10:00:00Z"
	objects.Item(pod, "name", "app", "status", "containerStatuses")["ready"] = false
}

func podUpdate(k engines.Kind, manager string, change func(*unstructured.Unstructured)) func() (*Case, error) {
	return func() (*Case, error) {
		live, err := podOf(k, nil)
		if err != nil {
			return nil, err
		}
		updated, err := podOf(k, change)
		return updating(k, live, updated, manager), err
	}
}

// podFirstApply applies to an object that has only a kind, as a server does if no object exists.
func podFirstApply(k engines.Kind) func() (*Case, error) {
	return func() (*Case, error) {
		intent := objects.Intent(objects.Pod())
		empty, err := engines.New(k)
		c := applying(k, empty, intent, applier)
		c.Object = intent
		return c, err
	}
}

func nodeHeartbeat() (*Case, error) {
	node := objects.Node()
	bare := objects.Fresh(node)
	delete(bare.Object, "status")
	live, err := (&history{kind: engines.Node}).create(updater, bare).status(updater, node).live(node)
	if err != nil {
		return nil, err
	}
	updated := objects.Fresh(live)
	objects.Item(updated, "type", "Ready", "status", "conditions")["lastHeartbeatTime"] = "2026-01-07T10:00:00Z"
	return updating(engines.Node.Status(), live, updated, updater), nil
}

// deploymentConflict applies, as a third manager, other values for fields that an applier and an autoscaler own.
func deploymentConflict() (*Case, error) {
	obj := objects.Deployment()
	intent := objects.Intent(obj)
	unstructured.RemoveNestedField(intent.Object, "spec", "replicas")
	scale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "checkout", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(6)},
	}}
	live, err := (&history{kind: engines.Deployment}).apply(applier, intent).apply("autoscaler", scale).
		status("deployment-controller", obj).live(obj)
	other := objects.Intent(obj)
	objects.Set(other, int64(3), "spec", "replicas")
	app := objects.Item(other, "name", "app", "spec", "template", "spec", "containers")
	app["image"] = "registry.example.dev/shop/checkout:3.0.0"
	return conflicting(engines.Deployment, live, other, "pipeline"), err
}

// structCreate creates a Pod without an apply.
func structCreate() (*Case, error) {
	k := engines.Pod.AsStruct()
	updated, err := podOf(k, func(pod *unstructured.Unstructured) {
		pod.SetManagedFields(nil)
		pod.SetUID("")
	})
	if err != nil {
		return nil, err
	}
	empty, err := engines.New(k)
	c := updating(k, empty, updated, updater)
	c.Object = updated
	return c, err
}

func endpointsApply() (*Case, error) {
	obj := objects.Endpoints()
	live, err := stored(engines.Endpoints, obj, applier, updater)
	return applying(engines.Endpoints, live, objects.Intent(obj), applier), err
}

func endpointsUpdate() (*Case, error) {
	live, err := stored(engines.Endpoints, objects.Endpoints(), applier, updater)
	if err != nil {
		return nil, err
	}
	updated := objects.Fresh(live)
	objects.Set(updated, "2026-01-07T10:00:00Z",
		"metadata", "annotations", "endpoints.kubernetes.io/last-change-trigger-time")
	return updating(engines.Endpoints, live, updated, "endpoints-controller"), nil
}

func crdApply() (*Case, error) {
	obj := objects.CRD()
	live, err := stored(engines.CRD, obj, applier, "apiextensions")
	return applying(engines.CRD, live, objects.Intent(obj), applier), err
}

// compileCRD compiles the schema of a CustomResourceDefinition that is about as large as etcd allows. A server does so
// when it starts, and when the definition changes.
func compileCRD() (*Case, error) {
	properties := map[string]any{}
	for i := range 5 {
		properties[fmt.Sprintf("part%d", i)] = objects.Schema()
	}
	gvk := map[string]any{"group": "db.example.dev", "version": "v1", "kind": "Cluster"}
	tree := map[string]any{
		"type": "object", "properties": properties, "x-kubernetes-group-version-kind": []any{gvk},
	}
	model := &spec.Schema{}
	data, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(data, model)
	}
	models := map[string]*spec.Schema{"dev.example.db.v1.Cluster": model}
	return &Case{&unstructured.Unstructured{Object: tree}, func(e engines.Engine) (Body, error) {
		return Body{Run: func(runtime.Object) (any, error) { return nil, e.Compile(models) }}, nil
	}}, err
}
