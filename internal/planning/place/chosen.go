package place

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/document"
)

// SetByServer replaces values in the response to a dry run that the server chooses anew for each write. In a dry run,
// it returns other values than it will store: a node port that it does not allocate, for example.
const SetByServer = "(set by the server)"

// tokenVolume begins the name of the volume that admission adds to a new Pod. The rest of the name is random.
const tokenVolume = "kube-api-access-"

var (
	serviceKind = schema.GroupKind{Kind: "Service"}
	podKind     = schema.GroupKind{Kind: "Pod"}
)

// WithoutChosen returns the response to a dry run with [SetByServer] in place of each value that the server chose and
// that neither the intent nor the live object has: the UID and the time of a new object, also where a Job repeats the
// UID; the name of the volume with a new Pod's token; and the cluster IPs and node ports of a Service.
func (w *Desired) WithoutChosen(served map[string]any) map[string]any {
	isService := w.Kind.GroupKind() == serviceKind
	if served == nil || w.Object != nil && !isService {
		return served
	}
	served = runtime.DeepCopyJSON(served)
	if isService {
		known := map[string]bool{"": true, "0": true, "None": true}
		for _, tree := range []map[string]any{w.Object, w.Tree} {
			eachAllocated(runtime.DeepCopyJSON(tree), func(value any) any {
				known[fmt.Sprint(value)] = true
				return value
			})
		}
		eachAllocated(served, func(value any) any {
			if known[fmt.Sprint(value)] {
				return value
			}
			return SetByServer
		})
	}
	if w.Object != nil {
		return served
	}
	var pairs []string
	if uid := document.TextAt(served, "uid"); uid != "" {
		pairs = append(pairs, uid, SetByServer)
	}
	if w.Kind.GroupKind() == podKind {
		volumes, _, _ := unstructured.NestedSlice(served, "spec", "volumes")
		given, _, _ := unstructured.NestedSlice(w.Tree, "spec", "volumes")
		for _, volume := range volumes {
			name := nameOf(volume)
			isSame := func(other any) bool { return nameOf(other) == name }
			if strings.HasPrefix(name, tokenVolume) && !slices.ContainsFunc(given, isSame) {
				pairs = append(pairs, name, tokenVolume+SetByServer)
			}
		}
	}
	served = replaceIn(served, strings.NewReplacer(pairs...)).(map[string]any)
	if document.TextAt(w.Tree, "creationTimestamp") == "" && document.TextAt(served, "creationTimestamp") != "" {
		_ = unstructured.SetNestedField(served, SetByServer, "metadata", "creationTimestamp") // metadata is a map
	}
	return served
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// eachAllocated replaces each value in a Service that a server may allocate by the result of f.
func eachAllocated(service map[string]any, f func(any) any) {
	spec, _ := service["spec"].(map[string]any)
	replace := func(fields map[string]any, name string) {
		if value, ok := fields[name]; ok {
			fields[name] = f(value)
		}
	}
	replace(spec, "clusterIP")
	replace(spec, "healthCheckNodePort")
	ips, _ := spec["clusterIPs"].([]any)
	for i := range ips {
		ips[i] = f(ips[i])
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		fields, _ := port.(map[string]any)
		replace(fields, "nodePort")
	}
}

// replaceIn replaces texts in all strings of a tree, in place.
func replaceIn(value any, texts *strings.Replacer) any {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			value[name] = replaceIn(v, texts)
		}
	case []any:
		for i := range value {
			value[i] = replaceIn(value[i], texts)
		}
	case string:
		return texts.Replace(value)
	}
	return value
}
