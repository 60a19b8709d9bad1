package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

const (
	namespacesPath  = "/api/v1/namespaces"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// patience is how long the server may take until it serves a definition, or has deleted something.
	patience = time.Minute
)

// errSkipped is why a trace can't run on this server.
type errSkipped string

func (e errSkipped) Error() string { return string(e) }

// cluster is the server, and what was created in it.
//
// Invariant: namespaces and defined have everything that has to be deleted in the end, from before the request that may
// create it returns an answer that is understood.
type cluster struct {
	r          *recorded.Replayer
	namespaces []string
	defined    map[string]string // CustomResourceDefinitions to their last spec, as JSON
}

// do sends a request and returns the object in the response.
func (c *cluster) do(method, path string, body any) (code int, object map[string]any, err error) {
	q := recorded.Request{Method: method, Target: path, Body: body, Header: map[string]string{"Content-Type": "application/json"}}
	if method == http.MethodPatch {
		q.Header["Content-Type"] = string(types.MergePatchType)
	}
	answer, err := c.r.Ask(q)
	if err != nil {
		return 0, nil, err
	}
	_ = utiljson.Unmarshal(answer.Body, &object) // a proxy's page is no object
	return answer.Code, object, nil
}

// refused returns the error of a response that is no success.
func refused(what string, code int, status map[string]any) error {
	message, _ := status["message"].(string)
	return fmt.Errorf("%s: status %d: %s", what, code, message)
}

// version returns the version of the server.
func (c *cluster) version() (string, error) {
	code, v, err := c.do(http.MethodGet, "/version", nil)
	if err != nil || code != http.StatusOK {
		return "of unknown version", err
	}
	return fmt.Sprint(v["gitVersion"]), nil
}

// makeNamespace creates a namespace for a trace.
func (c *cluster) makeNamespace() (string, error) {
	name := "ssa-conformance-" + string(uuid.NewUUID())[:8]
	c.namespaces = append(c.namespaces, name)
	code, status, err := c.do(http.MethodPost, namespacesPath, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "ssa-conformance"},
		},
	})
	if err == nil && code != http.StatusCreated {
		err = refused("create a namespace", code, status)
	}
	return name, err
}

// define creates a CustomResourceDefinition, or gives one that this run created another spec, and waits until it is
// served. The descriptions of its schemas are a mark by which the published OpenAPI shows that it is.
func (c *cluster) define(ctx context.Context, crd map[string]any) error {
	body := recorded.Definition(crd)
	name, _ := lookup(body, path{"f:metadata", "f:name"})
	spec, _ := crd["spec"].(map[string]any)
	last, isDefined := c.defined[fmt.Sprint(name)]
	if isDefined && last == short(spec) {
		return nil
	}
	// A copy, as the mark is put into it.
	var marked map[string]any
	if err := utiljson.Unmarshal([]byte(short(spec)), &marked); err != nil {
		return err
	}
	mark := string(uuid.NewUUID())
	var served []string // GROUP/VERSION
	versions, _ := marked["versions"].([]any)
	for _, item := range versions {
		if schema, ok := lookup(item, path{"f:schema", "f:openAPIV3Schema"}); ok {
			schema.(map[string]any)["description"] = mark
		}
		if v, _ := item.(map[string]any); v["served"] == true {
			served = append(served, fmt.Sprintf("/apis/%v/%v", spec["group"], v["name"]))
		}
	}
	body["spec"] = marked
	method, target := http.MethodPost, definitionsPath
	if isDefined {
		method, target = http.MethodPatch, definitionsPath+"/"+fmt.Sprint(name)
		body = map[string]any{"spec": marked}
	}
	code, status, err := c.do(method, target, body)
	switch {
	case err != nil:
		return err
	case code == http.StatusNotFound && !isDefined:
		return errSkipped("the server has no CustomResourceDefinitions")
	case code == http.StatusConflict && !isDefined:
		return errSkipped(fmt.Sprintf("the CustomResourceDefinition %s exists already, and is not touched", name))
	case code >= http.StatusMultipleChoices:
		return refused(fmt.Sprintf("create the CustomResourceDefinition %s", name), code, status)
	}
	c.defined[fmt.Sprint(name)] = short(spec)
	plural, _ := lookup(spec, path{"f:names", "f:plural"})
	return c.await(ctx, fmt.Sprintf("the server does not serve the CustomResourceDefinition %s", name), func() (bool, error) {
		for _, version := range served {
			answer, err := c.r.Ask(recorded.Request{Method: http.MethodGet, Target: "/openapi/v3" + version})
			if err != nil || answer.Code != http.StatusOK || !strings.Contains(string(answer.Body), mark) {
				return false, err
			}
			code, _, err := c.do(http.MethodGet, fmt.Sprintf("%s/%s?limit=1", version, plural), nil)
			if err != nil || code != http.StatusOK {
				return false, err
			}
		}
		return true, nil
	})
}

// await asks again and again, up to the patience.
func (c *cluster) await(ctx context.Context, what string, done func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return done() })
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// collection returns the path of the collection that a step is about, and its resource as RESOURCE.GROUP.
func collection(step *recorded.Step) (at, resource string) {
	before, below, ok := strings.Cut(step.Request.Path, "/namespaces/default/")
	if !ok {
		return "", ""
	}
	resource, _, _ = strings.Cut(below, "/")
	at = before + "/namespaces/default/" + resource
	if group, ok := strings.CutPrefix(before, "/apis/"); ok {
		group, _, _ = strings.Cut(group, "/")
		resource += "." + group
	}
	return at, resource
}

// serves returns an error if the server does not have the resource of a step.
func (c *cluster) serves(step *recorded.Step) error {
	at, resource := collection(step)
	code, _, err := c.do(http.MethodGet, at+"?limit=1", nil)
	if err == nil && code == http.StatusNotFound {
		err = errSkipped("the server does not serve " + resource)
	}
	return err
}

// empty deletes the objects of a trace and its namespace. Nothing waits for a controller: finalizers are removed.
func (c *cluster) empty(namespace string, trace *recorded.Trace) error {
	var met []string
	var errs []error
	for i := range trace.Steps {
		at, _ := collection(&trace.Steps[i])
		if at == "" || slices.Contains(met, at) {
			continue
		}
		met = append(met, at)
		at = strings.Replace(at, "/default/", "/"+namespace+"/", 1)
		code, list, err := c.do(http.MethodGet, at, nil)
		if err != nil || code != http.StatusOK {
			errs = append(errs, err) // what is not served has no objects
			continue
		}
		items, _ := list["items"].([]any)
		for _, item := range items {
			name, _ := lookup(item, path{"f:metadata", "f:name"})
			object := fmt.Sprintf("%s/%s", at, name)
			if _, ok := lookup(item, path{"f:metadata", "f:finalizers"}); ok {
				_, _, err := c.do(http.MethodPatch, object, map[string]any{"metadata": map[string]any{"finalizers": nil}})
				errs = append(errs, err)
			}
			errs = append(errs, c.delete(object))
		}
	}
	return errors.Join(append(errs, c.delete(namespacesPath+"/"+namespace))...)
}

func (c *cluster) delete(object string) error {
	code, status, err := c.do(http.MethodDelete, object, map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background",
	})
	if err == nil && code >= http.StatusMultipleChoices && code != http.StatusNotFound && code != http.StatusConflict {
		err = refused("delete "+object, code, status)
	}
	return err
}

// cleanUp deletes the definitions, and waits until they and the namespaces are gone.
func (c *cluster) cleanUp(ctx context.Context) error {
	var errs []error
	gone := func(object string) error {
		return c.await(ctx, object+" is not deleted", func() (bool, error) {
			code, _, err := c.do(http.MethodGet, object, nil)
			return code == http.StatusNotFound, err
		})
	}
	for name := range c.defined {
		errs = append(errs, c.delete(definitionsPath+"/"+name))
	}
	for i, name := range c.namespaces {
		// The first one gets the time that a namespace controller needs to begin; the others have had it by then.
		errs = append(errs, c.finalize(name, i == 0))
	}
	for name := range c.defined {
		errs = append(errs, gone(definitionsPath+"/"+name))
	}
	for _, name := range c.namespaces {
		errs = append(errs, gone(namespacesPath+"/"+name))
	}
	return errors.Join(errs...)
}

// finalize completes the deletion of a namespace that no namespace controller deletes: where there is one, it says so in
// conditions, and other controllers have put a ServiceAccount or a ConfigMap into the namespace.
func (c *cluster) finalize(name string, isFirst bool) error {
	at := namespacesPath + "/" + name
	grace := time.Second
	for deadline := time.Now().Add(grace); ; time.Sleep(20 * time.Millisecond) {
		code, namespace, err := c.do(http.MethodGet, at, nil)
		if err != nil || code == http.StatusNotFound {
			return err
		}
		if _, ok := lookup(namespace, path{"f:status", "f:conditions"}); ok {
			return nil
		}
		if isFirst && time.Now().Before(deadline) {
			continue
		}
		for _, resource := range []string{"serviceaccounts", "configmaps"} {
			_, list, err := c.do(http.MethodGet, at+"/"+resource+"?limit=1", nil)
			if items, _ := list["items"].([]any); err != nil || len(items) > 0 {
				return err
			}
		}
		namespace["spec"] = map[string]any{"finalizers": []any{}}
		code, status, err := c.do(http.MethodPut, at+"/finalize", namespace)
		if err == nil && code >= http.StatusMultipleChoices && code != http.StatusNotFound {
			err = refused("finalize the namespace "+name, code, status)
		}
		return err
	}
}
