package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// named returns an object with what a stored object of any kind has.
func named(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{
			"name": name, "uid": "9a1e0c6e-7d9b-4a63-9a45-5a3e1f3f6f00",
			"resourceVersion": "1000", "creationTimestamp": "2026-01-05T08:30:00Z",
			"labels": map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop"},
		},
	}}
}

// digest returns a digest that looks like one of an image.
func digest(i int) string {
	sum := sha256.Sum256(fmt.Append(nil, i))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Node returns a Node with 10 conditions and 50 images.
func Node() *unstructured.Unstructured {
	u := named("v1", "Node", "worker-17")
	for _, name := range []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/arch",
		"kubernetes.io/os", "kubernetes.io/hostname", "node.kubernetes.io/instance-type"} {
		Set(u, "x", "metadata", "labels", name)
	}
	Set(u, "true", "metadata", "annotations", "volumes.kubernetes.io/controller-managed-attach-detach")
	u.Object["spec"] = map[string]any{
		"podCIDR": "10.4.17.0/24", "podCIDRs": []any{"10.4.17.0/24"}, "providerID": "cloud:///zone-a/worker-17",
	}
	capacity := func(cpu, memory string) map[string]any {
		return map[string]any{
			"cpu":               cpu,
			"memory":            memory,
			"pods":              "110",
			"ephemeral-storage": "203070420Ki",
			"hugepages-2Mi":     "0",
		}
	}
	var conditions, images, volumes []any
	for i, name := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "KernelDeadlock",
		"ReadonlyFilesystem", "FrequentKubeletRestart", "FrequentContainerdRestart", "CorruptDockerOverlay2", "Ready"} {
		conditions = append(conditions, map[string]any{
			"type": name, "status": map[bool]string{true: "True", false: "False"}[name == "Ready"],
			"reason": name + "Reason", "message": fmt.Sprintf("condition %d of the node is as expected", i),
			"lastHeartbeatTime": "2026-01-05T08:30:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}
	for i := range 50 {
		repo := fmt.Sprintf("registry.example.dev/shop/service-%02d", i)
		images = append(images, map[string]any{
			"names":     []any{repo + "@" + digest(i), fmt.Sprintf("%s:1.%d.0", repo, i)},
			"sizeBytes": int64(20_000_000 + i*1_234_567),
		})
	}
	for i := range 4 {
		name := fmt.Sprintf("kubernetes.io/csi/disk.example.dev^vol-%d", i)
		volumes = append(volumes, map[string]any{"name": name, "devicePath": ""})
	}
	u.Object["status"] = map[string]any{
		"capacity": capacity("16", "65842812Ki"), "allocatable": capacity("15890m", "63223420Ki"),
		"addresses": []any{
			map[string]any{"type": "InternalIP", "address": "192.0.2.17"},
			map[string]any{"type": "Hostname", "address": "worker-17"},
		},
		"conditions": conditions, "images": images, "volumesAttached": volumes,
		"daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": int64(10250)}},
		"nodeInfo": map[string]any{
			"architecture": "amd64", "bootID": "b", "machineID": "m", "systemUUID": "s", "operatingSystem": "linux",
			"containerRuntimeVersion": "containerd://2.1.4", "kernelVersion": "6.12.0", "osImage": "Linux",
			"kubeProxyVersion": "v1.36.3", "kubeletVersion": "v1.36.3",
		},
	}
	return u
}

// Endpoints returns Endpoints of 670 addresses, about 150 KB; its lists are
// atomic.
func Endpoints() *unstructured.Unstructured {
	u := named("v1", "Endpoints", "checkout")
	u.SetNamespace("shop")
	var addresses []any
	for i := range 670 {
		addresses = append(addresses, map[string]any{
			"ip":       fmt.Sprintf("10.4.%d.%d", i/250, i%250+1),
			"nodeName": fmt.Sprintf("worker-%d", i%40),
			"hostname": fmt.Sprintf("checkout-%d", i),
			"targetRef": map[string]any{
				"kind": "Pod", "namespace": "shop", "name": fmt.Sprintf("checkout-6d5f7c9b8-%05d", i),
				"uid": digest(i)[7:43], "resourceVersion": fmt.Sprint(48_000_000 + i),
			},
		})
	}
	port := func(name string, n int64) any {
		return map[string]any{"name": name, "port": n, "protocol": "TCP"}
	}
	u.Object["subsets"] = []any{map[string]any{
		"addresses": addresses, "ports": []any{port("http", 8080), port("grpc", 9090)},
	}}
	return u
}

// CRD returns a CustomResourceDefinition whose schema is about 300 KB, as those
// are that embed a Pod's template several times over.
func CRD() *unstructured.Unstructured {
	u := named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "clusters.db.example.dev")
	u.Object["spec"] = map[string]any{
		"group": "db.example.dev", "scope": "Namespaced",
		"names": map[string]any{"kind": "Cluster", "listKind": "ClusterList", "plural": "clusters", "singular": "cluster"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"additionalPrinterColumns": []any{
				map[string]any{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
			},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{
					"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"},
					"metadata": map[string]any{"type": "object"}, "spec": schemaOf(0), "status": schemaOf(2),
				},
			}},
		}},
	}
	u.Object["status"] = map[string]any{
		"acceptedNames": map[string]any{
			"kind":     "Cluster",
			"listKind": "ClusterList",
			"plural":   "clusters",
			"singular": "cluster",
		},
		"storedVersions": []any{"v1"},
		"conditions": []any{map[string]any{
			"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
			"message": "the initial names have been accepted", "lastTransitionTime": "2026-01-05T08:30:00Z",
		}},
	}
	return u
}

// Schema returns the schema of a field of about 300 KB, that of the spec in [CRD].
func Schema() map[string]any { return schemaOf(0) }

// schemaOf returns the schema of a struct that nests below depth, which has
// structs, lists, maps and scalars in it.
func schemaOf(depth int) map[string]any {
	properties := map[string]any{}
	for i := range 6 {
		properties[fmt.Sprintf("text%d", i)] = map[string]any{
			"type":      "string",
			"maxLength": int64(253),
			"description": "What a user reads about the field, which is most of what a schema weighs. " +
				"More: https://example.dev/docs.",
		}
		properties[fmt.Sprintf("count%d", i)] = map[string]any{"type": "integer", "format": "int32", "minimum": int64(0)}
	}
	properties["mode"] = map[string]any{"type": "string", "enum": []any{"Auto", "Manual", "Off"}, "default": "Auto"}
	properties["selector"] = map[string]any{
		"type": "object", "additionalProperties": map[string]any{"type": "string"}, "x-kubernetes-map-type": "atomic",
	}
	properties["port"] = map[string]any{
		"anyOf":                      []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}},
		"x-kubernetes-int-or-string": true,
	}
	if depth < 4 {
		for i := range 3 {
			properties[fmt.Sprintf("nested%d", i)] = schemaOf(depth + 1)
		}
		properties["items"] = map[string]any{
			"type": "array", "items": schemaOf(4),
			"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"text0"},
		}
	}
	return map[string]any{"type": "object", "required": []any{"text0"}, "properties": properties}
}

// Fleet returns an object of a custom type with a keyed list of n items.
func Fleet(n int) *unstructured.Unstructured {
	u := named("example.dev/v1", "Fleet", "fleet")
	u.SetNamespace("shop")
	items := make([]any, n)
	for i := range items {
		items[i] = map[string]any{
			"name":     fmt.Sprintf("ship-%06d", i),
			"image":    fmt.Sprintf("registry.example.dev/shop/ship:1.%d", i%10),
			"replicas": int64(i % 7),
			"labels":   map[string]any{"zone": fmt.Sprintf("zone-%d", i%3)},
		}
	}
	u.Object["spec"] = map[string]any{"items": items}
	return u
}

// Shuffled returns fleet with its items in another order, the same each time.
func Shuffled(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	out := Fresh(fleet)
	items := out.Object["spec"].(map[string]any)["items"].([]any)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return out
}

// OtherAlphabets returns fleet with names that have letters beyond ASCII, and characters that JSON escapes.
func OtherAlphabets(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	out := Fresh(fleet)
	for i, item := range out.Object["spec"].(map[string]any)["items"].([]any) {
		item.(map[string]any)["name"] = fmt.Sprintf("%s-%06d", []string{"é", "日本", "سفن", "😀", "a<b"}[i%5], i)
	}
	return out
}

// WithList returns an object of the type of [Fleet] that has one list in its spec.
func WithList(field string, items []any) *unstructured.Unstructured {
	out := Fleet(0)
	out.Object["spec"] = map[string]any{field: items}
	return out
}

// Ships returns fleet with only the items from one position to before another.
func Ships(fleet *unstructured.Unstructured, from, to int) *unstructured.Unstructured {
	items := fleet.Object["spec"].(map[string]any)["items"].([]any)
	part := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleet.Object["apiVersion"], "kind": fleet.Object["kind"], "metadata": fleet.Object["metadata"],
		"spec": map[string]any{"items": items[from:to]},
	}}
	return Fresh(part)
}
