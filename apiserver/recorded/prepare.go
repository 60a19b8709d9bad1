package recorded

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Before the first step of a trace the server gets the CustomResourceDefinition and the
// namespaces of the recording.

// setByServer are the metadata fields that the server sets.
var setByServer = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink",
}

// Definition returns a recorded CustomResourceDefinition as a client creates it, with its labels and annotations:
// groups *.k8s.io need the annotation api-approved.kubernetes.io.
func Definition(crd map[string]any) map[string]any {
	given, _ := crd["metadata"].(map[string]any)
	metadata := maps.Clone(given)
	for _, name := range setByServer {
		delete(metadata, name)
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": metadata, "spec": crd["spec"],
	}
}

// define creates or updates a CustomResourceDefinition.
func (r *Replayer) define(crd map[string]any) error {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	body := Definition(crd)
	metadata, _ := body["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	header := map[string]string{"Content-Type": "application/json"}
	answer, err := r.Ask(Request{Method: http.MethodPost, Target: path, Header: header, Body: body})
	if err == nil && answer.Code == http.StatusConflict {
		// Not by PUT, which needs the resourceVersion.
		patch := []any{map[string]any{"op": "replace", "path": "/spec", "value": crd["spec"]}}
		for _, part := range []string{"annotations", "labels"} {
			if value, ok := metadata[part]; ok {
				patch = append(patch, map[string]any{"op": "add", "path": "/metadata/" + part, "value": value})
			}
		}
		header["Content-Type"] = "application/json-patch+json"
		answer, err = r.Ask(Request{Method: http.MethodPatch, Target: path + "/" + name, Header: header, Body: patch})
	}
	if err == nil && answer.Code >= http.StatusMultipleChoices {
		err = fmt.Errorf("the definition %s is refused: %d: %.700s", name, answer.Code, answer.Body)
	}
	if err == nil {
		spec, _ := crd["spec"].(map[string]any)
		group, _ := spec["group"].(string)
		r.defined[group] = true
	}
	return err
}

// makeNamespaces creates the namespaces of successful steps, except for default namespaces and
// those that the trace itself writes.
func (r *Replayer) makeNamespaces(trace *Trace) error {
	met := map[string]bool{"default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true}
	for i := range trace.Steps {
		if name := namespaceWritten(&trace.Steps[i]); name != "" {
			met[name] = true
		}
	}
	for i := range trace.Steps {
		step := &trace.Steps[i]
		name := namespaceOf(step)
		if name == "" || met[name] || step.Response.Code >= http.StatusMultipleChoices {
			continue
		}
		met[name] = true
		answer, err := r.Ask(Request{
			Method: http.MethodPost, Target: "/api/v1/namespaces",
			Header: map[string]string{"Content-Type": "application/json"},
			Body:   map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}},
		})
		if err != nil {
			return err
		}
		if answer.Code >= http.StatusMultipleChoices {
			return fmt.Errorf("namespace %q is refused: %d: %.700s", name, answer.Code, answer.Body)
		}
	}
	return nil
}

// below returns the segments of a path after the version.
func below(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api, v1
	if parts[0] == "apis" {
		skip = 3
	}
	return parts[min(skip, len(parts)):]
}

// namespaceOf returns the namespace of a step, or "".
func namespaceOf(step *Step) string {
	parts := below(step.Request.Path)
	if len(parts) < 3 || parts[0] != "namespaces" ||
		len(parts) == 3 && slices.Contains([]string{"status", "finalize"}, parts[2]) {
		return ""
	}
	return parts[1]
}

// namespaceWritten returns the Namespace that a step creates or changes, or "".
func namespaceWritten(step *Step) string {
	parts := below(step.Request.Path)
	if len(parts) == 0 || parts[0] != "namespaces" || namespaceOf(step) != "" || step.Request.Method == http.MethodGet {
		return ""
	}
	if len(parts) > 1 {
		return parts[1]
	}
	metadata, _ := step.Response.Body["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// groupOf returns the API group of a step, "" for the core group.
func groupOf(step *Step) string {
	rest, ok := strings.CutPrefix(step.Request.Path, "/apis/")
	if !ok {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// serves reports whether the server has the API group of a step.
func (r *Replayer) serves(step *Step) bool {
	group := groupOf(step)
	if group == "" || r.defined[group] {
		return true
	}
	answer, err := r.Ask(Request{Method: http.MethodGet, Target: "/apis/" + group})
	return err != nil || answer.Code != http.StatusNotFound
}
