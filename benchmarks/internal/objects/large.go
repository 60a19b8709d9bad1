package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// named returns an object with the metadata that stored objects of every kind have.
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

// digest returns a text that looks like the digest of an image.
func digest(i int) string {
	sum := sha256.Sum256(fmt.Append(nil, i))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Node returns a Node with 10 conditions and 50 images.
func Node() *unstructured.Unstructured {
	u := parse("Node")
	var images []any
	for i := range 50 {
		repo := fmt.Sprintf("registry.example.dev/shop/service-%02d", i)
		images = append(images, map[string]any{
			"names":     []any{repo + "@" + digest(i), fmt.Sprintf("%s:1.%d.0", repo, i)},
			"sizeBytes": int64(20_000_000 + i*1_234_567),
		})
	}
	Set(u, images, "status", "images")
	return u
}

// Endpoints returns Endpoints with 670 addresses, about 150 KB; its lists are atomic.
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

// CRD returns a CustomResourceDefinition with a schema of about 300 KB, like definitions that embed a Pod template
// several times.
func CRD() *unstructured.Unstructured {
	u := parse("CustomResourceDefinition")
	version := Item(u, "name", "v1", "spec", "versions")
	properties := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	properties["spec"], properties["status"] = schemaOf(0), schemaOf(2)
	return u
}

// Schema returns the schema of about 300 KB that [CRD] uses for spec.
func Schema() map[string]any { return schemaOf(0) }

// schemaOf returns the schema of a struct with structs, lists, maps and scalars. A struct at depth 4 has no structs and
// lists.
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

// Shuffled returns fleet with its items in another order, always the same.
func Shuffled(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	out := Fresh(fleet)
	items := out.Object["spec"].(map[string]any)["items"].([]any)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return out
}

// OtherAlphabets returns fleet with names that contain non-ASCII letters, and characters that JSON escapes.
func OtherAlphabets(fleet *unstructured.Unstructured) *unstructured.Unstructured {
	out := Fresh(fleet)
	for i, item := range out.Object["spec"].(map[string]any)["items"].([]any) {
		item.(map[string]any)["name"] = fmt.Sprintf("%s-%06d", []string{"é", "日本", "سفن", "😀", "a<b"}[i%5], i)
	}
	return out
}

// WithList returns an object of [Fleet]'s type with one list in its spec.
func WithList(field string, items []any) *unstructured.Unstructured {
	out := Fleet(0)
	out.Object["spec"] = map[string]any{field: items}
	return out
}

// Ships returns fleet with only the items at positions from ≤ i < to.
func Ships(fleet *unstructured.Unstructured, from, to int) *unstructured.Unstructured {
	items := fleet.Object["spec"].(map[string]any)["items"].([]any)
	part := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleet.Object["apiVersion"], "kind": fleet.Object["kind"], "metadata": fleet.Object["metadata"],
		"spec": map[string]any{"items": items[from:to]},
	}}
	return Fresh(part)
}
