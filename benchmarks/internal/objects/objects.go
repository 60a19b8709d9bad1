// Package objects makes the objects that the benchmarks write. Like objects in a cluster, they have defaults and a full
// status, but they have no managed fields. Equal calls return equal objects that share no memory.
package objects

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

//go:embed objects.yaml
var documents string

// Pod returns a running Pod of two containers.
func Pod() *unstructured.Unstructured { return parse("Pod") }

// Deployment returns a rolled-out Deployment with Pods like [Pod].
func Deployment() *unstructured.Unstructured { return parse("Deployment") }

// parse returns the document of a kind.
func parse(kind string) *unstructured.Unstructured {
	for text := range strings.SplitSeq(documents, "\n---\n") {
		if !strings.Contains(text, "\nkind: "+kind+"\n") {
			continue
		}
		data, err := yaml.YAMLToJSON([]byte(text))
		must(err)
		u := &unstructured.Unstructured{}
		must(json.Unmarshal(data, &u.Object))
		return u
	}
	panic("objects: no document of kind " + kind)
}

// Fresh returns a copy of obj after encoding and decoding it as JSON. Unlike a deep copy, and like an object from a
// request, it shares no strings with obj. So no comparison is fast only because two strings share memory.
func Fresh(obj *unstructured.Unstructured) *unstructured.Unstructured {
	data, err := json.Marshal(obj.Object)
	must(err)
	u := &unstructured.Unstructured{}
	must(json.Unmarshal(data, &u.Object))
	return u
}

// serverSet are the fields of metadata that no intent has.
var serverSet = []string{
	"uid",
	"resourceVersion",
	"generation",
	"creationTimestamp",
	"generateName",
	"ownerReferences",
	"managedFields",
}

// defaulted are the names of fields that clients usually omit and that a server adds, wherever they occur. The protocol
// of a port is a key field. Clients may still omit it, because items are matched after key fields get their defaults.
var defaulted = []string{
	"terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "dnsPolicy", "schedulerName",
	"enableServiceLinks", "preemptionPolicy", "restartPolicy", "nodeName", "priority", "serviceAccount",
	"protocol", "scheme", "defaultMode", "successThreshold", "timeoutSeconds", "revisionHistoryLimit",
	"progressDeadlineSeconds", "tolerations",
}

// Intent returns the intent of an applier that created obj: obj without its status, its defaults and the fields that
// the server set.
func Intent(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := Fresh(obj)
	delete(out.Object, "status")
	metadata := out.Object["metadata"].(map[string]any)
	for _, name := range serverSet {
		delete(metadata, name)
	}
	if spec, ok := out.Object["spec"]; ok {
		undefault(spec)
	}
	return out
}

// undefault removes the defaulted fields from a tree.
func undefault(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, v := range tree {
			// UDP is not the default. Without it, the item would be a different port.
			if slices.Contains(defaulted, name) && v != "UDP" {
				delete(tree, name)
				continue
			}
			undefault(v)
		}
	case []any:
		for _, v := range tree {
			undefault(v)
		}
	}
}

// Set sets the field at a path of maps.
func Set(obj *unstructured.Unstructured, v any, path ...string) {
	must(unstructured.SetNestedField(obj.Object, v, path...))
}

// Item returns the item of the list at path whose field has the given value.
func Item(obj *unstructured.Unstructured, field, value string, path ...string) map[string]any {
	list, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	must(err)
	for _, item := range list.([]any) {
		if item := item.(map[string]any); item[field] == value {
			return item
		}
	}
	panic(fmt.Sprintf("objects: no %s=%s in %v", field, value, path))
}

// Struct fills a Go struct with obj.
func Struct[T any](obj *unstructured.Unstructured) *T {
	out := new(T)
	must(runtime.DefaultUnstructuredConverter.FromUnstructured(Fresh(obj).Object, out))
	return out
}

// must panics on an error: the objects are constants, so an error is a mistake in them.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("objects: %v", err))
	}
}
