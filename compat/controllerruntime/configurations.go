package controllerruntime

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

const admissionGroup = "admissionregistration.k8s.io"

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// configurationKinds are the kinds that say what the server does with objects of other kinds. Policies count without a
// binding, too.
var configurationKinds = []schema.GroupKind{
	definitionKind,
	{Group: admissionGroup, Kind: "MutatingWebhookConfiguration"},
	{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"},
	{Group: admissionGroup, Kind: "MutatingAdmissionPolicy"},
	{Group: admissionGroup, Kind: "ValidatingAdmissionPolicy"},
}

func isConfiguration(kind schema.GroupKind) bool { return slices.Contains(configurationKinds, kind) }

// settling is how long a server may go on with an older CustomResourceDefinition than its watch told.
const settling = 5 * time.Second

// configurations are what is watched of the configuration kinds.
type configurations struct {
	cache   cache.Cache
	mapper  meta.RESTMapper
	refresh time.Duration
	settles time.Duration

	mu      sync.Mutex
	looked  time.Time // when the kinds that are served were last looked for
	watches map[schema.GroupKind]toolscache.ResourceEventHandlerRegistration
	// rules are those of webhooks and policies, and definitions are by resource.
	rules       map[objectKey][]rule
	definitions map[schema.GroupResource]*definition
	// seen are the resourceVersions of what is watched, and expected of what this client wrote and is not seen yet.
	seen, expected map[objectKey]string
}

// rule says which resources a webhook or a policy is for. Selectors and conditions may narrow that.
type rule struct {
	Operations, APIGroups, Resources []string
}

// definition is a CustomResourceDefinition, compiled once for each generation.
type definition struct {
	Group
	generation int64
	since      time.Time
}

func newConfigurations(c cache.Cache, mapper meta.RESTMapper, refresh time.Duration) *configurations {
	return &configurations{
		cache: c, mapper: mapper, refresh: refresh, settles: settling,
		watches: map[schema.GroupKind]toolscache.ResourceEventHandlerRegistration{},
		rules:   map[objectKey][]rule{}, definitions: map[schema.GroupResource]*definition{},
		seen: map[objectKey]string{}, expected: map[objectKey]string{},
	}
}

// areKnown reports whether all configurations are known that the server had when this client last wrote one. It starts
// to watch what is not watched yet.
func (c *configurations) areKnown(ctx context.Context) bool {
	c.mu.Lock()
	isDue := time.Since(c.looked) >= c.refresh
	c.mu.Unlock()
	if isDue && !c.watch(ctx) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches {
		if !w.HasSynced() {
			return false
		}
	}
	return len(c.expected) == 0
}

// watch watches the kinds that are served. It reports whether it is known which.
func (c *configurations) watch(ctx context.Context) bool {
	for _, kind := range configurationKinds {
		c.mu.Lock()
		_, isWatched := c.watches[kind]
		c.mu.Unlock()
		if isWatched {
			continue
		}
		mapping, err := c.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue // a server without policies
		}
		if err != nil {
			return false
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(mapping.GroupVersionKind)
		informer, err := c.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return false
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.set(kind, obj) },
			UpdateFunc: func(_, obj any) { c.set(kind, obj) },
			DeleteFunc: func(obj any) { c.remove(kind, obj) },
		})
		if err != nil {
			return false
		}
		c.mu.Lock()
		c.watches[kind] = registration
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = time.Now()
	return true
}

func (c *configurations) set(kind schema.GroupKind, obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := objectKey{kind, client.ObjectKeyFromObject(u)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == definitionKind {
		c.define(u)
	} else {
		c.rules[key] = rulesOf(u)
	}
	c.seen[key] = u.GetResourceVersion()
	if isReached(c.seen[key], c.expected[key]) {
		delete(c.expected, key)
	}
}

func (c *configurations) remove(kind schema.GroupKind, obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := objectKey{kind, client.ObjectKeyFromObject(u)}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rules, key)
	delete(c.seen, key)
	if kind == definitionKind {
		delete(c.definitions, schema.ParseGroupResource(u.GetName()))
	}
	if isReached(u.GetResourceVersion(), c.expected[key]) {
		delete(c.expected, key)
	}
}

// expect learns that this client wrote a configuration.
func (c *configurations) expect(key objectKey, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isWatched := c.watches[key.kind]; isWatched && !isReached(c.seen[key], version) {
		c.expected[key] = version
	}
}

func isReached(version, expected string) bool {
	order, err := resourceversion.CompareResourceVersion(version, expected)
	return version == expected || err == nil && order >= 0
}

// define compiles a definition that is new or changed.
func (c *configurations) define(crd *unstructured.Unstructured) {
	resource := schema.ParseGroupResource(crd.GetName())
	if known := c.definitions[resource]; known != nil && known.generation == crd.GetGeneration() {
		return
	}
	d := &definition{generation: crd.GetGeneration(), since: time.Now()}
	c.definitions[resource] = d
	var body struct {
		Spec struct {
			Names      struct{ Kind string }
			Conversion struct{ Strategy string }
			Versions   []struct {
				Name         string
				Subresources struct{ Status *struct{} }
			}
		}
	}
	err := decode(crd, &body)
	if err != nil || body.Spec.Conversion.Strategy == "Webhook" {
		return // without types: a webhook may convert an object in another way each time
	}
	if d.Types, err = openapi.CompileCRD(crd.Object); err != nil {
		d.Types = nil
		return
	}
	d.Statuses = map[schema.GroupVersionKind]bool{}
	for _, v := range body.Spec.Versions {
		kind := schema.GroupVersionKind{Group: resource.Group, Version: v.Name, Kind: body.Spec.Names.Kind}
		d.Statuses[kind] = v.Subresources.Status != nil
	}
}

// custom returns the types of a custom resource; none for one that can't be planned. ok is false for other resources.
func (c *configurations) custom(resource schema.GroupResource) (group Group, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.definitions[resource]
	switch {
	case d == nil:
		return Group{}, false
	case time.Since(d.since) < c.settles:
		return Group{}, true
	}
	return d.Group, true
}

// rulesOf returns the rules of a configuration of webhooks or of a policy. One that can't be read matches everything.
func rulesOf(u *unstructured.Unstructured) (all []rule) {
	var body struct {
		Webhooks []struct{ Rules []rule }
		Spec     struct {
			MatchConstraints struct{ ResourceRules []rule }
		}
	}
	if err := decode(u, &body); err != nil {
		return []rule{{Operations: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*/*"}}}
	}
	for _, w := range body.Webhooks {
		all = append(all, w.Rules...)
	}
	return append(all, body.Spec.MatchConstraints.ResourceRules...)
}

func decode(u *unstructured.Unstructured, into any) error {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// admits reports whether a webhook or a policy may be called for an update of a resource.
func (c *configurations) admits(resource schema.GroupResource, subresource string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rules := range c.rules {
		for _, r := range rules {
			if r.matches(resource, subresource) {
				return true
			}
		}
	}
	return false
}

func (r rule) matches(resource schema.GroupResource, subresource string) bool {
	matches := func(pattern, value string) bool { return pattern == "*" || pattern == value }
	return slices.ContainsFunc(r.Operations, func(o string) bool { return matches(o, "UPDATE") }) &&
		slices.ContainsFunc(r.APIGroups, func(g string) bool { return matches(g, resource.Group) }) &&
		slices.ContainsFunc(r.Resources, func(name string) bool {
			name, sub, _ := strings.Cut(name, "/")
			return matches(name, resource.Resource) && matches(sub, subresource)
		})
}
