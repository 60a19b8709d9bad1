// Package cluster sends the requests of commands to an API server.
//
// It finds the server through k8s.io/cli-runtime, so that it uses the same cluster as kubectl.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
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

// pageSize is the maximum number of objects in one page of a list.
const pageSize = 500

// ErrNotFound reports an object that does not exist.
var ErrNotFound = errors.New("not found")

// Cluster is a client of a cluster. Reads and writes of objects are safe for concurrent use; methods that read kinds
// and schemas are not.
type Cluster struct {
	getter  genericclioptions.RESTClientGetter
	config  *rest.Config
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	types   map[string]*openapi.Registry // by API group
	custom  map[schema.GroupKind]map[string]any
}

// New returns a client for the cluster that a getter selects. It sends no requests.
func New(getter genericclioptions.RESTClientGetter) (*Cluster, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if config.QPS == 0 {
		config.QPS = -1 // no limit: commands send few concurrent requests, and servers limit clients themselves
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

// String returns the address of the cluster.
func (c *Cluster) String() string { return c.config.Host }

// Ping asks the server for its version, which needs no permissions.
func (c *Cluster) Ping() error {
	client, err := c.getter.ToDiscoveryClient()
	if err == nil {
		_, err = client.ServerVersion()
	}
	return err
}

// Namespace returns the namespace for objects that name no namespace.
func (c *Cluster) Namespace() (string, error) {
	namespace, _, err := c.getter.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Kind describes how a cluster serves a kind at a version.
type Kind struct {
	schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespaced bool
}

// Kind returns how the cluster serves a kind at a version, or at its preferred version if the version is empty.
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

// KindFor returns the kind of a resource.
func (c *Cluster) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return c.mapper.KindFor(resource)
}

func kindOf(mapping *meta.RESTMapping) Kind {
	return Kind{
		GroupVersionKind: mapping.GroupVersionKind, Resource: mapping.Resource,
		Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
}

// Selection selects objects, as the arguments of kubectl do.
type Selection struct {
	Args      []string // KIND, KIND NAME…, KIND/NAME…
	Selector  string   // labels
	Fields    string   // a field selector
	Namespace string   // namespace of Args; if empty, the kubeconfig's
	All       bool     // in all namespaces
}

// Found is an object of a cluster.
type Found struct {
	Kind   Kind
	Object map[string]any
}

// Visit calls see with the selected objects. It reads lists page by page. The error joins the errors of objects that
// could not be read.
func (c *Cluster) Visit(s Selection, see func(Found)) error {
	namespace := s.Namespace
	if namespace == "" {
		var err error
		if namespace, err = c.Namespace(); err != nil {
			return err
		}
	}
	builder := resource.NewBuilder(c.getter).Unstructured().ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(s.All).
		LabelSelectorParam(s.Selector).FieldSelectorParam(s.Fields).RequestChunksOf(pageSize).
		ResourceTypeOrNameArgs(true, s.Args...).Flatten()
	err := builder.Do().Visit(func(info *resource.Info, err error) error {
		if obj, ok := info.Object.(*unstructured.Unstructured); ok && err == nil {
			see(Found{Kind: kindOf(info.Mapping), Object: obj.Object})
		}
		return err
	})
	return c.explainUnknown(err)
}

// KindsNamed returns the kinds with the given names. A name has the same form as a KIND in the arguments of Visit.
func (c *Cluster) KindsNamed(names []string) (out []Kind, err error) {
	all := resource.NewBuilder(c.getter).ReplaceAliases(strings.Join(names, ",")) // categories
	for _, name := range resource.SplitResourceArgument(all) {
		builder := resource.NewBuilder(c.getter).Unstructured().ResourceTypes(name).SelectAllParam(true)
		mapping, err := builder.Do().ResourceMapping()
		if err != nil {
			return nil, c.explainUnknown(err)
		}
		out = append(out, kindOf(mapping))
	}
	return out, nil
}

// explainUnknown adds a suggestion to an error about an unknown resource.
func (c *Cluster) explainUnknown(err error) error {
	if err == nil {
		return nil
	}
	if unknown := unknownResource.FindStringSubmatch(err.Error()); unknown != nil {
		return fmt.Errorf("%w%s", err, DidYouMean(unknown[1], c.resourceNames()))
	}
	return err
}

// unknownResource matches the error of cli-runtime's builder for an unknown resource.
var unknownResource = regexp.MustCompile(`have a resource type "([^"]+)"$`)

// resourceNames returns the names of all kinds that users can write.
func (c *Cluster) resourceNames() (out []string) {
	kinds, _ := c.Kinds()
	for _, k := range kinds {
		out = append(out, k.Resource.Resource, strings.ToLower(k.GroupVersionKind.Kind))
	}
	return out
}

// resource returns the client for a kind in a namespace.
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

// ListPages lists the objects of a kind that match the selection's namespace, labels and fields, in at most limit
// pages. Without a namespace, it lists all namespaces. It calls see with each page, and stops if see returns false. It
// calls whole only if it has read the complete list.
func (c *Cluster) ListPages(
	ctx context.Context, k Kind, in Selection, limit int, see func(page []map[string]any) bool, whole func(),
) error {
	token := ""
	for range limit {
		list, err := c.resource(k, in.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: in.Selector, FieldSelector: in.Fields, Limit: pageSize, Continue: token,
		})
		if err != nil {
			return err
		}
		page := make([]map[string]any, len(list.Items))
		for i := range list.Items {
			page[i] = list.Items[i].Object
		}
		goesOn := see(page)
		if token = list.GetContinue(); token == "" {
			whole()
			return nil
		}
		if !goesOn {
			return nil
		}
	}
	return nil
}

// WriteOptions are the options of a write.
type WriteOptions struct {
	Manager     string
	Force       bool // for an apply
	DryRun      bool
	Subresource string // "" for the main resource
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

// Apply applies an intent, and returns the stored object.
func (c *Cluster) Apply(
	ctx context.Context, k Kind, namespace string, intent map[string]any, o WriteOptions,
) (map[string]any, error) {
	data, err := json.Marshal(intent)
	if err != nil {
		return nil, err
	}
	name := (&unstructured.Unstructured{Object: intent}).GetName()
	return treeOf(c.resource(k, namespace).Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: o.Manager, Force: &o.Force, DryRun: o.dryRun(), FieldValidation: metav1.FieldValidationStrict,
	}, o.subresources()...))
}

// Create creates an object, and returns the stored object.
func (c *Cluster) Create(
	ctx context.Context, k Kind, namespace string, tree map[string]any, o WriteOptions,
) (map[string]any, error) {
	return treeOf(c.resource(k, namespace).Create(ctx, &unstructured.Unstructured{Object: tree}, metav1.CreateOptions{
		FieldManager: o.Manager, DryRun: o.dryRun(), FieldValidation: metav1.FieldValidationStrict,
	}))
}

// Update replaces an object, and returns the stored object.
func (c *Cluster) Update(
	ctx context.Context, k Kind, namespace string, tree map[string]any, o WriteOptions,
) (map[string]any, error) {
	return treeOf(c.resource(k, namespace).Update(ctx, &unstructured.Unstructured{Object: tree}, metav1.UpdateOptions{
		FieldManager: o.Manager, DryRun: o.dryRun(), FieldValidation: metav1.FieldValidationStrict,
	}, o.subresources()...))
}

// Patch sends a patch, and returns the stored object.
func (c *Cluster) Patch(
	ctx context.Context, k Kind, namespace, name string, patchType types.PatchType, patch []byte, o WriteOptions,
) (map[string]any, error) {
	return treeOf(c.resource(k, namespace).Patch(ctx, name, patchType, patch, metav1.PatchOptions{
		FieldManager: o.Manager, DryRun: o.dryRun(),
	}))
}

// Delete deletes an object as kubectl delete does, but on condition that the object still has the version that was
// read. It returns ErrNotFound if the object does not exist, and a conflict if the object was changed or replaced after
// the read.
func (c *Cluster) Delete(ctx context.Context, k Kind, read map[string]any) error {
	propagation := metav1.DeletePropagationBackground
	object := &unstructured.Unstructured{Object: read}
	options := metav1.DeleteOptions{PropagationPolicy: &propagation, Preconditions: &metav1.Preconditions{}}
	if uid := object.GetUID(); uid != "" {
		options.Preconditions.UID = &uid
	}
	if version := object.GetResourceVersion(); version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	err := c.resource(k, object.GetNamespace()).Delete(ctx, object.GetName(), options)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

func treeOf(u *unstructured.Unstructured, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}

// similar is the similarity above which DidYouMean suggests a name.
const similar = 0.75

// DidYouMean returns a question that suggests the candidate whose first word is most similar to an unknown name; ""
// if none is similar.
func DidYouMean(name string, candidates []string) string {
	closest, most := "", similar
	for _, candidate := range candidates {
		word, _, _ := strings.Cut(candidate, " ")
		ratio := difflib.NewMatcher(strings.Split(name, ""), strings.Split(word, "")).Ratio()
		if ratio > most {
			closest, most = candidate, ratio
		}
	}
	if closest == "" {
		return ""
	}
	return "; did you mean " + closest + "?"
}

// Review asks the server whether the user has a permission. attributes are the resourceAttributes of a
// SelfSubjectAccessReview.
func (c *Cluster) Review(ctx context.Context, attributes map[string]any) (map[string]any, error) {
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1",
		Resource: "selfsubjectaccessreviews"}
	return treeOf(c.dynamic.Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": reviews.GroupVersion().String(), "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": attributes},
	}}, metav1.CreateOptions{}))
}
