package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience is how long a server may take to serve a definition, or to delete something.
const Patience = time.Minute

// Await calls isDone until isDone returns true, even if isDone returns errors. After Patience, Await returns an error;
// the parameter otherwise is the beginning of its message.
func Await(ctx context.Context, otherwise string, isDone func() (bool, error)) error {
	var last error
	ask := func(context.Context) (done bool, _ error) {
		done, last = isDone()
		return done, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, Patience, true, ask); err != nil {
		return fmt.Errorf("%s: %w", otherwise, errors.Join(err, last))
	}
	return nil
}

// Unfit is an error that explains why a trace can't run on this server.
type Unfit string

func (u Unfit) Error() string { return string(u) }

// DefinitionsPath is the path of CustomResourceDefinitions.
const DefinitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// setByServer are the metadata fields that the server sets.
var setByServer = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink",
}

// define creates a CustomResourceDefinition with its labels and annotations (groups *.k8s.io need the annotation
// api-approved.kubernetes.io). If this replayer has already created it, define changes its spec. It waits until the
// definition is served. To see that, it marks the descriptions of the schemas, and looks for the mark in the server's
// OpenAPI document.
func (r *Replayer) define(ctx context.Context, crd map[string]any) error {
	given, _ := crd["metadata"].(map[string]any)
	metadata := maps.Clone(given)
	for _, field := range setByServer {
		delete(metadata, field)
	}
	name, _ := metadata["name"].(string)
	unmarked, err := json.Marshal(crd["spec"])
	if err != nil {
		return err
	}
	last, isDefined := r.defined[name]
	if last == string(unmarked) {
		return nil
	}
	recorded, _ := crd["spec"].(map[string]any)
	spec := runtime.DeepCopyJSON(recorded)
	target := Target{}
	target.Group, _ = spec["group"].(string)
	names, _ := spec["names"].(map[string]any)
	target.Resource, _ = names["plural"].(string)
	mark := string(uuid.NewUUID())
	var served []Target
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		schema, _ := version["schema"].(map[string]any)
		if root, ok := schema["openAPIV3Schema"].(map[string]any); ok {
			root["description"] = mark
		}
		if version["served"] == true {
			target.Version, _ = version["name"].(string)
			served = append(served, target)
		}
	}
	header := map[string]string{"Content-Type": "application/json"}
	q := Request{Method: http.MethodPost, Target: DefinitionsPath, Header: header}
	q.Body = map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec,
	}
	if isDefined {
		// PUT would need the resourceVersion.
		q.Method, q.Target, header["Content-Type"] = http.MethodPatch, q.Target+"/"+name, "application/json-patch+json"
		q.Body = []any{map[string]any{"op": "replace", "path": "/spec", "value": spec}}
	}
	switch answer, err := r.Ask(q); {
	case err != nil:
		return err
	case answer.Code == http.StatusNotFound && !isDefined:
		return Unfit("the server has no CustomResourceDefinitions")
	case answer.Code == http.StatusConflict && !isDefined:
		return Unfit("the CustomResourceDefinition " + name + " exists already, and is not touched")
	case answer.Code >= http.StatusMultipleChoices:
		return fmt.Errorf("the CustomResourceDefinition %s is refused: %d: %.700s", name, answer.Code, answer.Body)
	}
	r.defined[name] = string(unmarked)
	isPublished := true
	err = Await(ctx, "the CustomResourceDefinition "+name+" is not served", func() (bool, error) {
		for _, target := range served {
			if _, err := r.Get(target.Collection()); err != nil {
				return false, err
			}
			document, err := r.Get("/openapi/v3/apis/" + target.Group + "/" + target.Version)
			if isPublished = err == nil && strings.Contains(string(document), mark); !isPublished {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil && !isPublished && ctx.Err() == nil {
		return Unpublished
	}
	return err
}

// Unpublished means that the replayer can't find out when a definition is served.
const Unpublished = Unfit("the server does not publish schemas of custom resources as OpenAPI v3")

// Defined returns the names of the CustomResourceDefinitions that this replayer created.
func (r *Replayer) Defined() []string {
	var names []string
	for name := range r.defined {
		names = append(names, name)
	}
	return names
}

// Get returns the body of the response to a GET.
func (r *Replayer) Get(path string) ([]byte, error) {
	answer, err := r.Ask(Request{Method: http.MethodGet, Target: path})
	if err != nil {
		return nil, err
	}
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d: %.300s", path, answer.Code, answer.Body)
	}
	return answer.Body, nil
}

// makeNamespaces creates the namespaces of successful steps, except for default namespaces and namespaces that the
// trace itself creates.
func (r *Replayer) makeNamespaces(trace *Trace) error {
	met := map[string]bool{"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true}
	var needed []string
	for i := range trace.Steps {
		step := &trace.Steps[i]
		target, err := step.Request.Target()
		switch {
		case err != nil || step.Request.Method == http.MethodGet && target.Resource == "namespaces":
		case target.Resource == "namespaces" && target.Group == "":
			metadata, _ := step.Response.Body["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			met[target.Name], met[name] = true, true
		case step.Response.Code < http.StatusMultipleChoices:
			needed = append(needed, target.Namespace)
		}
	}
	for _, name := range needed {
		if met[name] {
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

// serves returns an error if the server does not serve the resource of a step.
func (r *Replayer) serves(step *Step) error {
	target, err := step.Request.Target()
	if err != nil {
		return err
	}
	answer, err := r.Ask(Request{Method: http.MethodGet, Target: target.Collection() + "?limit=1"})
	if err == nil && answer.Code == http.StatusNotFound {
		return Unfit("the server does not serve " + strings.TrimSuffix(target.Resource+"."+target.Group, "."))
	}
	return err
}
