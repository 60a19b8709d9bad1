package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/lru"

	types "github.com/tenure-ssa/tenure/typed/openapi"
)

// definitions is the resource customresourcedefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// Definition returns the CustomResourceDefinition of a kind; nil if there is none, or if the user may not read it.
func (c *Cluster) Definition(ctx context.Context, k Kind) (map[string]any, error) {
	if k.Group == "" {
		return nil, nil
	}
	if tree, ok := c.custom[k.GroupKind()]; ok {
		return tree, nil
	}
	obj, err := c.dynamic.Resource(definitions).Get(ctx, k.Resource.Resource+"."+k.Group, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("definition of %s: %w", k.GroupKind(), err)
	}
	var tree map[string]any
	if err == nil {
		tree = obj.Object
	}
	c.custom[k.GroupKind()] = tree
	return tree, nil
}

// Types returns the types of all kinds of a group, at all published versions, because entries of managed fields may
// have other versions than the object.
func (c *Cluster) Types(group string) (*types.Registry, error) {
	if known := c.types[group]; known != nil {
		return known, nil
	}
	client, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("schemas: %w", err)
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	var registries []*types.Registry
	for _, g := range groups.Groups {
		if g.Name != group {
			continue
		}
		for _, v := range g.Versions {
			path := "apis/" + v.GroupVersion
			if group == "" {
				path = "api/" + v.GroupVersion
			}
			registry, err := compileDocument(paths[path])
			if err != nil {
				return nil, fmt.Errorf("schema of %s: %w", v.GroupVersion, err)
			}
			registries = append(registries, registry)
		}
	}
	c.types[group] = types.Union(registries...)
	return c.types[group], nil
}

func compileDocument(document openapi.GroupVersion) (*types.Registry, error) {
	if document == nil {
		return nil, errors.New("the server publishes no OpenAPI v3 document")
	}
	data, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(data)
	if known, ok := compiled.Get(digest); ok {
		return known.(*types.Registry), nil
	}
	registry, err := types.CompileV3(data)
	if err == nil {
		compiled.Add(digest, registry)
	}
	return registry, err
}

// compiled are the types of the last OpenAPI documents, by the SHA-256 digest of the document. Thus a program that
// makes a Cluster for each operation compiles each document only once.
var compiled = lru.New(64)

// HasSubresource reports whether a kind has a subresource.
func (c *Cluster) HasSubresource(k Kind, name string) (bool, error) {
	client, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return false, err
	}
	list, err := client.ServerResourcesForGroupVersion(k.GroupVersion().String())
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Name == k.Resource.Resource+"/"+name {
			return true, nil
		}
	}
	return false, nil
}

// Kinds returns the kinds that can be listed, each at its preferred version, in the order of discovery. If some API
// groups can't be discovered, it returns the other kinds and an error.
func (c *Cluster) Kinds() (out []Kind, err error) {
	client, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			out = append(out, Kind{
				GroupVersionKind: gv.WithKind(r.Kind), Resource: gv.WithResource(r.Name), Namespaced: r.Namespaced,
			})
		}
	}
	return out, err
}

// Versions returns the served versions of a kind, the preferred one first.
func (c *Cluster) Versions(gk schema.GroupKind) (out []string) {
	mappings, err := c.mapper.RESTMappings(gk)
	if err != nil {
		return nil
	}
	for _, mapping := range mappings {
		if version := mapping.GroupVersionKind.Version; !slices.Contains(out, version) {
			out = append(out, version)
		}
	}
	return out
}

// ForgetDiscovery clears all caches. Call it after kinds were defined or removed.
func (c *Cluster) ForgetDiscovery() {
	clear(c.custom)
	clear(c.types)
	c.Rediscover()
}

// Rediscover reads discovery again when it is needed next. It is safe for concurrent use.
func (c *Cluster) Rediscover() {
	if client, err := c.getter.ToDiscoveryClient(); err == nil {
		client.Invalidate()
	}
	meta.MaybeResetRESTMapper(c.mapper)
}

// Local is [ForConfig] with the namespace "default".
func Local(config *rest.Config) (*Cluster, error) { return ForConfig(config, metav1.NamespaceDefault) }

// ForConfig returns a client of a cluster for a client configuration, without a kubeconfig. Objects that name no
// namespace get the given one.
func ForConfig(config *rest.Config, namespace string) (*Cluster, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return New(&localGetter{config, namespace, cached, mapper})
}

// localGetter is a RESTClientGetter without a kubeconfig.
type localGetter struct {
	config    *rest.Config
	namespace string
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

func (g *localGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g *localGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g *localGetter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

func (g *localGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, overrides)
}
