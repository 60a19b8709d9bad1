package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

const namespacesPath = "/api/v1/namespaces"

// cluster is the server, and what was created in it.
//
// Invariant: namespaces and the CustomResourceDefinitions of r are everything that has to be deleted in the end.
type cluster struct {
	r          *recorded.Replayer // of no trace
	namespaces []string
}

// ask sends a request of the suite's own, and returns the object of the response; nil for what does not exist.
func (c *cluster) ask(method, target string, contentType types.PatchType, body any) (map[string]any, error) {
	header := map[string]string{"Content-Type": string(contentType)}
	answer, err := c.r.Ask(recorded.Request{Method: method, Target: target, Header: header, Body: body})
	switch {
	case err != nil:
		return nil, err
	case answer.Code == http.StatusNotFound:
		return nil, nil
	case answer.Code >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s %s: status %d: %.300s", method, target, answer.Code, answer.Body)
	}
	var object map[string]any
	return object, utiljson.Unmarshal(answer.Body, &object)
}

// write sends an object as JSON.
func (c *cluster) write(method, target string, object any) error {
	_, err := c.ask(method, target, "application/json", object)
	return err
}

// items lists objects.
func (c *cluster) items(target string) (items []*unstructured.Unstructured, err error) {
	list, err := c.ask(http.MethodGet, target, "", nil)
	all, _ := list["items"].([]any)
	for _, item := range all {
		object, _ := item.(map[string]any)
		items = append(items, &unstructured.Unstructured{Object: object})
	}
	return items, err
}

// makeNamespace creates a namespace for a trace.
func (c *cluster) makeNamespace() (string, error) {
	name := "ssa-conformance-" + string(uuid.NewUUID())[:8]
	c.namespaces = append(c.namespaces, name)
	return name, c.write(http.MethodPost, namespacesPath, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "ssa-conformance"},
		},
	})
}

// empty deletes the objects of a trace and its namespace. Nothing waits for a controller: finalizers are removed.
func (c *cluster) empty(namespace string, trace *recorded.Trace) error {
	target, err := trace.Steps[0].Request.Target()
	if err != nil {
		return err
	}
	target.Namespace = namespace
	objects, err := c.items(target.Collection())
	errs := []error{err}
	for _, object := range objects {
		path := target.Collection() + "/" + object.GetName()
		if len(object.GetFinalizers()) > 0 {
			patch := map[string]any{"metadata": map[string]any{"finalizers": nil}}
			_, err := c.ask(http.MethodPatch, path, types.MergePatchType, patch)
			errs = append(errs, err)
		}
		errs = append(errs, c.write(http.MethodDelete, path+"?gracePeriodSeconds=0", nil))
	}
	return errors.Join(append(errs, c.write(http.MethodDelete, namespacesPath+"/"+namespace, nil))...)
}

// cleanUp deletes the definitions, and waits until they and the namespaces are gone.
func (c *cluster) cleanUp(ctx context.Context) error {
	var errs []error
	var deleted []string
	for _, name := range c.r.Defined() {
		deleted = append(deleted, recorded.DefinitionsPath+"/"+name)
		errs = append(errs, c.write(http.MethodDelete, recorded.DefinitionsPath+"/"+name, nil))
	}
	for i, name := range c.namespaces {
		deleted = append(deleted, namespacesPath+"/"+name)
		// The first one gets the time that a namespace controller needs to begin; the others have had it by then.
		errs = append(errs, c.finalize(name, i == 0))
	}
	for _, path := range deleted {
		errs = append(errs, recorded.Await(ctx, path+" is not deleted", func() (bool, error) {
			object, err := c.ask(http.MethodGet, path, "", nil)
			return object == nil && err == nil, err
		}))
	}
	return errors.Join(errs...)
}

// finalize completes the deletion of a namespace that no namespace controller deletes: where there is one, it says so
// in conditions, and the controller beside it has put a ServiceAccount into the namespace.
func (c *cluster) finalize(name string, isFirst bool) error {
	path := namespacesPath + "/" + name
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		namespace, err := c.ask(http.MethodGet, path, "", nil)
		if err != nil || namespace == nil {
			return err
		}
		if _, ok, _ := unstructured.NestedSlice(namespace, "status", "conditions"); ok {
			return nil
		}
		if isFirst && time.Now().Before(deadline) {
			continue
		}
		accounts, err := c.items(path + "/serviceaccounts?limit=1")
		if err != nil || len(accounts) > 0 {
			return err
		}
		namespace["spec"] = map[string]any{}
		return c.write(http.MethodPut, path+"/finalize", namespace)
	}
}
