package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// ServedOptions select the resources of a server to write to.
type ServedOptions struct {
	// Names are API groups and resources. A group, or core for the group without a name, selects all its namespaced
	// resources. A resource has the form ingressclasses.networking.k8s.io.
	Names []string
	// Namespace is an existing namespace for the objects. If it is "", a new namespace is created and deleted at the
	// end.
	Namespace string
	// Keep keeps the objects and the namespace.
	Keep bool
}

// served describes the resources of a server.
type served struct {
	ServedOptions
	cluster
	ctx       context.Context
	discovery discovery.DiscoveryInterface
	client    dynamic.Interface
	documents map[schema.GroupVersion][]byte // OpenAPI v3
}

// RunServed sends random writes to a server, and makes the same writes with both engines in this process. Unless
// from.Keep is set, it deletes the objects that it created.
func RunServed(ctx context.Context, config *rest.Config, from ServedOptions, options DefinitionsOptions) (
	d *Definitions, err error) {
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	s := &served{ServedOptions: from, ctx: ctx, documents: map[schema.GroupVersion][]byte{}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Timeout = recorded.Patience
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	s.r = recorded.OfClient(client, strings.TrimSuffix(url.String(), "/"))
	if s.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if s.client, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	d = &Definitions{total: checked{met: map[int]int{}, refused: map[string]int{}}, isServed: true}
	for _, name := range s.Names {
		if err := s.add(ctx, d, config, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.Namespace == "" {
		if s.Namespace, err = s.makeNamespace(); err != nil {
			return nil, err
		}
		if !s.Keep {
			defer func() { err = errors.Join(err, s.delete(context.WithoutCancel(ctx))) }()
		}
	}
	d.Run(ctx, options)
	return d, nil
}

func (s *served) delete(ctx context.Context) error {
	return errors.Join(s.write("DELETE", namespacesPath+"/"+s.Namespace, nil), s.cleanUp(ctx))
}

// addDefined adds the custom resources of a group, for servers that do not list groups in discovery, such as a
// separate apiextensions-apiserver.
func (s *served) addDefined(ctx context.Context, d *Definitions, config *rest.Config, group string) error {
	documents, err := ListDefinitions(ctx, config)
	if err != nil {
		return fmt.Errorf("the server has neither discovery of API groups nor CustomResourceDefinitions: %w", err)
	}
	count := len(d.all)
	for _, document := range documents {
		c, data, err := newChecked(document)
		if err != nil {
			return err
		}
		if c.Kind.Group != group {
			continue
		}
		if c.Tenure, err = openapi.CompileCRD(data); err != nil {
			return err
		}
		plural, _, _ := strings.Cut(c.name, ".")
		scope, _, _ := unstructured.NestedString(document.Tree, "spec", "scope")
		c.Prune, c.refused = nil, map[string]int{}
		c.Server = s.servers(schema.GroupVersion{Group: group, Version: c.Versions[0]},
			metav1.APIResource{Name: plural, Namespaced: scope == "Namespaced"})
		d.all = append(d.all, c)
	}
	if len(d.all) == count {
		return errors.New("the server has no discovery of API groups, and no CustomResourceDefinition of the group")
	}
	return nil
}

// add adds the resources of a group, or a single resource.
func (s *served) add(ctx context.Context, d *Definitions, config *rest.Config, name string) error {
	groups, err := s.discovery.ServerGroups()
	if apierrors.IsNotFound(err) || err == nil && len(groups.Groups) == 0 {
		return s.addDefined(ctx, d, config, name)
	}
	if err != nil {
		return err
	}
	find := func(name string) int {
		return slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	}
	resource, i := "", find(strings.TrimSuffix(name, "core")) // the core group has no name
	if i < 0 {
		var group string
		if resource, group, _ = strings.Cut(name, "."); find(group) < 0 {
			return errors.New("the server has no such API group")
		}
		i = find(group)
	}
	found := map[string]*checked{}
	for _, version := range groups.Groups[i].Versions {
		gv, err := schema.ParseGroupVersion(version.GroupVersion)
		if err != nil {
			return err
		}
		list, err := s.discovery.ServerResourcesForGroupVersion(version.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if resource != "" && r.Name != resource || strings.Contains(r.Name, "/") {
				continue
			}
			full := strings.TrimSuffix(r.Name+"."+gv.Group, ".")
			if why := unfit(r, resource != ""); why != "" {
				d.skipped = append(d.skipped, full+": "+why)
				continue
			}
			if found[full] == nil {
				found[full] = &checked{name: full, met: map[int]int{}, refused: map[string]int{}}
				found[full].Definition = oracle.Definition{
					Kind: gv.WithKind(r.Kind).GroupKind(), Schemas: map[string]*spec.Schema{},
				}
				found[full].Server = s.servers(gv, r)
			}
			c := found[full]
			c.Versions = append(c.Versions, gv.Version)
			c.HasStatus = c.HasStatus || slices.ContainsFunc(list.APIResources, func(sub metav1.APIResource) bool {
				return sub.Name == r.Name+"/status" && slices.Contains(sub.Verbs, "patch")
			})
		}
	}
	if resource != "" && len(found) == 0 {
		return errors.New("the server has no such resource")
	}
	for _, full := range slices.Sorted(maps.Keys(found)) {
		if err := s.setTypes(found[full], groups.Groups[i].Name); err != nil {
			return err
		}
		d.all = append(d.all, found[full])
	}
	return nil
}

// unfit returns the reason for not writing to a resource; "" if there is none.
func unfit(r metav1.APIResource, isNamed bool) string {
	for _, verb := range []string{"create", "get", "update", "patch", "delete"} {
		if !slices.Contains(r.Verbs, verb) {
			return "it does not support " + verb
		}
	}
	if !r.Namespaced && !isNamed {
		return "it is cluster-scoped: name the resource to include it"
	}
	return ""
}

// setTypes sets the schemas and types of a kind, from the OpenAPI documents for its versions.
func (s *served) setTypes(c *checked, group string) error {
	models := map[string]*spec.Schema{}
	var registries []*openapi.Registry
	for _, version := range c.Versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		document, err := s.document(gv)
		if err != nil {
			return err
		}
		var parsed spec3.OpenAPI
		if err := json.Unmarshal(document, &parsed); err != nil {
			return fmt.Errorf("OpenAPI of %s: %w", gv, err)
		}
		registry, err := openapi.CompileV3(document)
		if err != nil {
			return fmt.Errorf("OpenAPI of %s: %w", gv, err)
		}
		registries = append(registries, registry)
		for name, model := range parsed.Components.Schemas {
			models[name] = model
			var kinds []schema.GroupVersionKind
			if _ = model.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds); !slices.Contains(kinds,
				c.Kind.WithVersion(version)) {
				continue
			}
			c.Schemas[version], err = resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
				found, ok := parsed.Components.Schemas[path.Base(ref)]
				return found, ok
			}, name)
			if err != nil {
				return err
			}
		}
		if c.Schemas[version] == nil {
			return fmt.Errorf("OpenAPI of %s has no schema of %s", gv, c.Kind.Kind)
		}
	}
	c.Tenure = openapi.Union(registries...)
	var err error
	c.Upstream, err = managedfields.NewTypeConverter(models, false)
	return err
}

func (s *served) document(gv schema.GroupVersion) ([]byte, error) {
	if found, ok := s.documents[gv]; ok {
		return found, nil
	}
	paths, err := s.discovery.OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("the server publishes no OpenAPI v3: %w", err)
	}
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	document, ok := paths[name]
	if !ok {
		return nil, fmt.Errorf("the server publishes no OpenAPI v3 of %s", gv)
	}
	s.documents[gv], err = document.Schema(runtime.ContentTypeJSON)
	return s.documents[gv], err
}

// object is an object on a server.
type object struct {
	*served
	first    schema.GroupVersion // any of the versions
	resource metav1.APIResource
	name     string
}

// servers returns a function. Each call of this function returns another object of a resource, with a new name.
func (s *served) servers(gv schema.GroupVersion, r metav1.APIResource) func() oracle.Server {
	n := 0
	return func() oracle.Server {
		n++
		return &object{s, gv, r, fmt.Sprintf("random-%d", n)}
	}
}

// at returns the client for the resource at a version.
func (o *object) at(version string) dynamic.ResourceInterface {
	all := o.client.Resource(schema.GroupVersionResource{
		Group: o.first.Group, Version: version, Resource: o.resource.Name,
	})
	if o.resource.Namespaced {
		return all.Namespace(o.Namespace)
	}
	return all
}

// Name implements [oracle.Server].
func (o *object) Name() (name, namespace string) {
	if o.resource.Namespaced {
		return o.name, o.Namespace
	}
	return o.name, ""
}

// Live implements [oracle.Server].
func (o *object) Live(version string) (*unstructured.Unstructured, error) {
	live, err := o.at(version).Get(o.ctx, o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// Do implements [oracle.Server].
func (o *object) Do(w oracle.Write, how oracle.How) (*unstructured.Unstructured, error) {
	var dryRun, subresources []string
	if how.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	if w.Subresource != "" {
		subresources = []string{w.Subresource}
	}
	client := o.at(w.Version)
	switch {
	case w.Apply:
		data, err := json.Marshal(w.Object.Object)
		if err != nil {
			return nil, err
		}
		options := metav1.PatchOptions{FieldManager: w.Manager, Force: &w.Force, DryRun: dryRun}
		return client.Patch(o.ctx, o.name, types.ApplyPatchType, data, options, subresources...)
	case how.Create:
		return client.Create(o.ctx, w.Object, metav1.CreateOptions{FieldManager: w.Manager, DryRun: dryRun})
	default:
		options := metav1.UpdateOptions{FieldManager: w.Manager, DryRun: dryRun}
		return client.Update(o.ctx, w.Object, options, subresources...)
	}
}

// Close implements [oracle.Server].
func (o *object) Close() error {
	if o.Keep {
		return nil
	}
	err := o.at(o.first.Version).Delete(context.WithoutCancel(o.ctx), o.name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
