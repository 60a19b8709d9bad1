// Package cluster reads and writes the objects of a cluster, as far as a command
// about the ownership of fields needs it.
//
// It knows a cluster through what k8s.io/cli-runtime makes of a kubeconfig, so that
// it goes where kubectl goes.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Requests a second, and how many may come at once. The defaults of client-go are
// those of a controller, and a command that goes through a cluster would stand
// still for most of its time.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// pageSize is how many objects a list asks for at a time.
const pageSize = 500

// ErrNotFound says that there is no such object.
var ErrNotFound = errors.New("not found")

// Cluster is a cluster that kubectl would reach as well. It is not safe for
// concurrent use.
type Cluster struct {
	getter  genericclioptions.RESTClientGetter
	config  *rest.Config
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	types   map[string]*openapi.Registry // by group
	custom  map[schema.GroupKind]map[string]any
}

// New returns the cluster that getter leads to. Nothing is asked of it yet.
func New(getter genericclioptions.RESTClientGetter) (*Cluster, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if config.QPS == 0 {
		config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper, err := getter.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return &Cluster{
		getter: getter, config: config, dynamic: client, mapper: mapper,
		types: map[string]*openapi.Registry{}, custom: map[schema.GroupKind]map[string]any{},
	}, nil
}

// String names the cluster: its address.
func (c *Cluster) String() string { return c.config.Host }

// Namespace returns the namespace of objects that name none.
func (c *Cluster) Namespace() (string, error) {
	namespace, _, err := c.getter.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Kind is how a cluster serves a kind at a version.
type Kind struct {
	schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespaced bool
}

// Kind returns how a kind is served at a version, or at the one that the cluster
// prefers if the version is empty.
func (c *Cluster) Kind(gvk schema.GroupVersionKind) (Kind, error) {
	var versions []string
	if gvk.Version != "" {
		versions = []string{gvk.Version}
	}
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), versions...)
	if err != nil {
		return Kind{}, err
	}
	return kindOf(mapping), nil
}

func kindOf(mapping *meta.RESTMapping) Kind {
	return Kind{
		GroupVersionKind: mapping.GroupVersionKind, Resource: mapping.Resource,
		Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
}

// Selection says which objects: as kubectl takes them.
type Selection struct {
	Args      []string // KIND, KIND NAME…, KIND/NAME…
	Selector  string   // labels
	Namespace string   // of Args; the kubeconfig's when empty
	All       bool     // in all namespaces
}

// Found is an object of a cluster.
type Found struct {
	Kind   Kind
	Object map[string]any
}

// Find returns the objects of a selection. Those that can be had are returned
// along with an error for the others.
func (c *Cluster) Find(s Selection) ([]Found, error) {
	namespace := s.Namespace
	if namespace == "" {
		var err error
		if namespace, err = c.Namespace(); err != nil {
			return nil, err
		}
	}
	builder := resource.NewBuilder(c.getter).Unstructured().ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(s.All).
		LabelSelectorParam(s.Selector).RequestChunksOf(pageSize).
		ResourceTypeOrNameArgs(true, s.Args...).Flatten()
	infos, err := builder.Do().Infos()
	out := make([]Found, 0, len(infos))
	for _, info := range infos {
		if obj, ok := info.Object.(*unstructured.Unstructured); ok {
			out = append(out, Found{Kind: kindOf(info.Mapping), Object: obj.Object})
		}
	}
	return out, err
}

// resource returns where the objects of a kind in a namespace are.
func (c *Cluster) resource(k Kind, namespace string) dynamic.ResourceInterface {
	if !k.Namespaced {
		return c.dynamic.Resource(k.Resource)
	}
	return c.dynamic.Resource(k.Resource).Namespace(namespace)
}

// Get returns an object, or ErrNotFound.
func (c *Cluster) Get(ctx context.Context, k Kind, namespace, name string) (map[string]any, error) {
	obj, err := c.resource(k, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	return obj.Object, nil
}

// List returns the objects of a kind in a namespace, or in all of them if it is empty.
func (c *Cluster) List(ctx context.Context, k Kind, namespace string) ([]map[string]any, error) {
	var out []map[string]any
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := c.resource(k, namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, list.Items[i].Object)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

// WriteOptions are the options of a write.
type WriteOptions struct {
	Manager     string
	Force       bool // of an apply
	DryRun      bool
	Subresource string // "" for the object itself
}

func (o WriteOptions) dryRun() []string {
	if o.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (o WriteOptions) subresources() []string {
	if o.Subresource == "" {
		return nil
	}
	return []string{o.Subresource}
}

// Apply sends an intent, and returns the object as it is stored then.
func (c *Cluster) Apply(
	ctx context.Context, k Kind, namespace string, intent map[string]any, o WriteOptions,
) (map[string]any, error) {
	data, err := json.Marshal(intent)
	if err != nil {
		return nil, err
	}
	name := (&unstructured.Unstructured{Object: intent}).GetName()
	return object(c.resource(k, namespace).Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: o.Manager, Force: &o.Force, DryRun: o.dryRun(), FieldValidation: metav1.FieldValidationStrict,
	}, o.subresources()...))
}

// Create sends a new object, and returns it as it is stored then.
func (c *Cluster) Create(
	ctx context.Context, k Kind, namespace string, tree map[string]any, o WriteOptions,
) (map[string]any, error) {
	return object(c.resource(k, namespace).Create(ctx, &unstructured.Unstructured{Object: tree}, metav1.CreateOptions{
		FieldManager: o.Manager, DryRun: o.dryRun(), FieldValidation: metav1.FieldValidationStrict,
	}))
}

// Update sends an object in place of the one of its name, and returns it as it is stored then.
func (c *Cluster) Update(
	ctx context.Context, k Kind, namespace string, tree map[string]any, o WriteOptions,
) (map[string]any, error) {
	return object(c.resource(k, namespace).Update(ctx, &unstructured.Unstructured{Object: tree}, metav1.UpdateOptions{
		FieldManager: o.Manager, DryRun: o.dryRun(), FieldValidation: metav1.FieldValidationStrict,
	}, o.subresources()...))
}

// Patch sends a patch, and returns the object as it is stored then.
func (c *Cluster) Patch(
	ctx context.Context, k Kind, namespace, name string, of types.PatchType, patch []byte, manager string,
) (map[string]any, error) {
	return object(c.resource(k, namespace).Patch(ctx, name, of, patch, metav1.PatchOptions{FieldManager: manager}))
}

// Delete deletes an object, without a grace period. The error is ErrNotFound if there is none.
func (c *Cluster) Delete(ctx context.Context, k Kind, namespace, name string) error {
	err := c.resource(k, namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

func object(u *unstructured.Unstructured, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}
