package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

var (
	namespaceResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitionResource = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// patience is how long the server may take until it serves a definition, or has deleted something.
const patience = time.Minute

// errSkipped is why a trace can't run on this server.
type errSkipped string

func (e errSkipped) Error() string { return string(e) }

// cluster is the server, and what was created in it.
//
// Invariant: namespaces and defined have everything that has to be deleted in the end. A definition is in defined if
// and only if this run created it.
type cluster struct {
	dynamic    dynamic.Interface
	r          *recorded.Replayer // for what is no object
	namespaces []string
	defined    map[string]string // CustomResourceDefinitions to their last spec, as JSON
}

// get returns what is at a path.
func (c *cluster) get(path string) (string, error) {
	answer, err := c.r.Ask(recorded.Request{Method: http.MethodGet, Target: path})
	if err != nil {
		return "", err
	}
	if answer.Code != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.300s", path, answer.Code, answer.Body)
	}
	return string(answer.Body), err
}

// makeNamespace creates a namespace for a trace.
func (c *cluster) makeNamespace(ctx context.Context) (string, error) {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName("ssa-conformance-" + string(uuid.NewUUID())[:8])
	namespace.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "ssa-conformance"})
	c.namespaces = append(c.namespaces, namespace.GetName())
	_, err := c.dynamic.Resource(namespaceResource).Create(ctx, namespace, metav1.CreateOptions{})
	return namespace.GetName(), err
}

// define creates a CustomResourceDefinition, or gives one that this run created another spec, and waits until it is
// served. The descriptions of its schemas are a mark by which the published OpenAPI shows that it is.
func (c *cluster) define(ctx context.Context, crd map[string]any) error {
	definition := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(recorded.Definition(crd))}
	name := definition.GetName()
	spec, _ := definition.Object["spec"].(map[string]any)
	unmarked := short(spec)
	last, isDefined := c.defined[name]
	if last == unmarked {
		return nil
	}
	mark := string(uuid.NewUUID())
	group, _, _ := unstructured.NestedString(spec, "group")
	plural, _, _ := unstructured.NestedString(spec, "names", "plural")
	var served []schema.GroupVersionResource
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		v, _ := item.(map[string]any)
		if err := unstructured.SetNestedField(v, mark, "schema", "openAPIV3Schema", "description"); err != nil {
			return err
		}
		if v["served"] == true {
			served = append(served, schema.GroupVersionResource{Group: group, Version: fmt.Sprint(v["name"]), Resource: plural})
		}
	}
	var err error
	uninterrupted := context.WithoutCancel(ctx) // the answer says whether this run created it
	if definitions := c.dynamic.Resource(definitionResource); isDefined {
		patch := []byte(short(map[string]any{"spec": spec}))
		_, err = definitions.Patch(uninterrupted, name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = definitions.Create(uninterrupted, definition, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsNotFound(err) && !isDefined:
		return errSkipped("the server has no CustomResourceDefinitions")
	case apierrors.IsAlreadyExists(err):
		return errSkipped("the CustomResourceDefinition " + name + " exists already, and is not touched")
	case err != nil:
		return err
	}
	c.defined[name] = unmarked
	return await(ctx, "the CustomResourceDefinition "+name+" is not served", func(ctx context.Context) (bool, error) {
		for _, resource := range served {
			text, err := c.get("/openapi/v3/apis/" + resource.GroupVersion().String())
			if err != nil || !strings.Contains(text, mark) {
				return false, err
			}
			if _, err := c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// await asks again and again, also after errors, up to the patience.
func await(ctx context.Context, otherwise string, done func(context.Context) (bool, error)) error {
	var last error
	ask := func(ctx context.Context) (isDone bool, _ error) {
		isDone, last = done(ctx)
		return isDone, nil
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, ask)
	if err != nil {
		return fmt.Errorf("%s: %w", otherwise, errors.Join(err, last))
	}
	return nil
}

// resourceOf returns the resource that a step is about. It is the same in all steps of a trace, but for its version.
func resourceOf(step *recorded.Step) (resource schema.GroupVersionResource) {
	before, below, _ := strings.Cut(step.Request.Path, "/namespaces/default/")
	parts := strings.Split(before, "/") // "", api, VERSION, or "", apis, GROUP, VERSION
	resource.Version = parts[len(parts)-1]
	if len(parts) > 3 {
		resource.Group = parts[2]
	}
	resource.Resource, _, _ = strings.Cut(below, "/")
	return resource
}

// serves returns an error if the server does not have the resource of a step.
func (c *cluster) serves(ctx context.Context, step *recorded.Step) error {
	resource := resourceOf(step)
	_, err := c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return errSkipped("the server does not serve " + resource.GroupResource().String())
	}
	return err
}

// empty deletes the objects of a trace and its namespace. Nothing waits for a controller: finalizers are removed.
func (c *cluster) empty(ctx context.Context, namespace string, trace *recorded.Trace) error {
	objects := c.dynamic.Resource(resourceOf(&trace.Steps[0])).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{})
	errs := []error{gone(err)} // what is not served has no objects
	if err == nil {
		now := int64(0)
		for _, object := range list.Items {
			if len(object.GetFinalizers()) > 0 {
				patch := []byte(`{"metadata":{"finalizers":null}}`)
				_, err := objects.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
				errs = append(errs, err)
			}
			errs = append(errs, gone(objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})))
		}
	}
	err = c.dynamic.Resource(namespaceResource).Delete(ctx, namespace, metav1.DeleteOptions{})
	return errors.Join(append(errs, gone(err))...)
}

// gone returns an error unless it says that an object is gone.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// cleanUp deletes the definitions, and waits until they and the namespaces are gone.
func (c *cluster) cleanUp(ctx context.Context) error {
	var errs []error
	isGone := func(resource schema.GroupVersionResource, name string) {
		errs = append(errs, await(ctx, name+" is not deleted", func(ctx context.Context) (bool, error) {
			_, err := c.dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), gone(err)
		}))
	}
	for name := range c.defined {
		errs = append(errs, gone(c.dynamic.Resource(definitionResource).Delete(ctx, name, metav1.DeleteOptions{})))
	}
	for i, name := range c.namespaces {
		// The first one gets the time that a namespace controller needs to begin; the others have had it by then.
		errs = append(errs, c.finalize(ctx, name, i == 0))
	}
	for name := range c.defined {
		isGone(definitionResource, name)
	}
	for _, name := range c.namespaces {
		isGone(namespaceResource, name)
	}
	return errors.Join(errs...)
}

// finalize completes the deletion of a namespace that no namespace controller deletes: where there is one, it says so
// in conditions, and the controller beside it has put a ServiceAccount into the namespace.
func (c *cluster) finalize(ctx context.Context, name string, isFirst bool) error {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		namespace, err := c.dynamic.Resource(namespaceResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return gone(err)
		}
		if _, ok, _ := unstructured.NestedSlice(namespace.Object, "status", "conditions"); ok {
			return nil
		}
		if isFirst && time.Now().Before(deadline) {
			continue
		}
		accounts := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"})
		list, err := accounts.Namespace(name).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(list.Items) > 0 {
			return gone(err)
		}
		namespace.Object["spec"] = map[string]any{}
		_, err = c.dynamic.Resource(namespaceResource).Update(ctx, namespace, metav1.UpdateOptions{}, "finalize")
		return gone(err)
	}
}
