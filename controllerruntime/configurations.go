package controllerruntime

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/internal/responses"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// admissionKinds are the kinds of webhook configurations and policies. A plan does not know their effects on a write. A
// policy is treated as active even without a binding.
var admissionKinds = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"},
}

// settling is the maximum time during which a server may still use an older CustomResourceDefinition after a watch
// reported a newer one.
const settling = 5 * time.Second

// configurations are the cached objects that determine how a server handles other objects: webhooks, policies and
// CustomResourceDefinitions.
type configurations struct {
	cache   cache.Cache
	mapper  meta.RESTMapper
	refresh time.Duration

	mu     sync.Mutex
	looked time.Time // when served was last updated
	served map[schema.GroupKind]schema.GroupVersionKind
	// expected are the resourceVersions of the configurations that this client wrote and has not yet seen in the cache.
	expected    map[responses.Key]string
	definitions map[schema.GroupResource]*definition
}

// definition is a compiled CustomResourceDefinition. It has no types if a webhook converts objects, because each
// conversion may have a different result.
type definition struct {
	types           *openapi.Registry
	uid, generation any
	since           time.Time
}

// sync starts missing watches. It reports whether all watches have synced and the cache has this client's last write to
// each configuration.
func (c *configurations) sync(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= c.refresh {
		c.served = map[schema.GroupKind]schema.GroupVersionKind{}
		for _, kind := range append(admissionKinds, definitionKind) {
			mapping, err := c.mapper.RESTMapping(kind)
			if meta.IsNoMatchError(err) {
				continue // the server does not have this kind
			}
			if err != nil {
				return false
			}
			c.served[kind] = mapping.GroupVersionKind
		}
		c.looked = time.Now()
	}
	isSynced := true
	for _, kind := range c.served { // all watches start at once, so that they sync at the same time
		informer, err := c.cache.GetInformer(ctx, newObject(nil, kind), cache.BlockUntilSynced(false))
		isSynced = isSynced && err == nil && informer.HasSynced()
	}
	if !isSynced {
		return false
	}
	for key, version := range c.expected {
		obj := newObject(nil, c.served[key.GroupKind])
		err := c.cache.Get(ctx, key.NamespacedName, obj, client.UnsafeDisableDeepCopy)
		if err != nil || !responses.IsReached(obj.GetResourceVersion(), version) {
			return false
		}
		delete(c.expected, key)
	}
	return true
}

// wrote records that this client wrote an object. version is empty if it is not known, as for a deletion.
func (c *configurations) wrote(key responses.Key, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, isServed := c.served[key.GroupKind]; {
	case isServed && version != "":
		c.expected[key] = version
	case isServed:
		delete(c.expected, key) // a cache that still has the configuration only causes fewer skips
	}
}

// custom returns the types of a custom resource; nil if its applies can't be planned. isCustom is false for other
// resources.
func (c *configurations) custom(ctx context.Context, r schema.GroupResource) (types *openapi.Registry, isCustom bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(c.served[definitionKind])
	if err := c.cache.Get(ctx, client.ObjectKey{Name: r.String()}, crd, client.UnsafeDisableDeepCopy); err != nil {
		return nil, !apierrors.IsNotFound(err)
	}
	d := c.definitions[r]
	if d == nil || d.uid != crd.GetUID() || d.generation != crd.GetGeneration() {
		d = &definition{uid: crd.GetUID(), generation: crd.GetGeneration(), since: time.Now()}
		if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "Webhook" {
			if data, err := crd.MarshalJSON(); err == nil {
				d.types, _ = openapi.CompileCRD(data) // a definition that is not valid yet has no types
			}
		}
		c.definitions[r] = d
	}
	if time.Since(d.since) < settling {
		return nil, true
	}
	return d.types, true
}

// admits reports whether a webhook or a policy may be called for an update of a resource.
func (c *configurations) admits(ctx context.Context, resource schema.GroupResource, subresource string) bool {
	c.mu.Lock()
	served := maps.Clone(c.served)
	c.mu.Unlock()
	delete(served, definitionKind)
	for _, kind := range served {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return true
		}
		for _, item := range list.Items {
			webhooks, _, _ := unstructured.NestedFieldNoCopy(item.Object, "webhooks")
			all, _ := webhooks.([]any)
			for _, webhook := range all {
				if w, _ := webhook.(map[string]any); matchAny(w["rules"], resource, subresource) {
					return true
				}
			}
			rules, _, _ := unstructured.NestedFieldNoCopy(item.Object, "spec", "matchConstraints", "resourceRules")
			if matchAny(rules, resource, subresource) {
				return true
			}
		}
	}
	return false
}

// matchAny reports whether a rule matches updates of a resource, at any version. It ignores everything that narrows a
// rule, such as selectors and conditions.
func matchAny(rules any, resource schema.GroupResource, subresource string) bool {
	all, _ := rules.([]any)
	return slices.ContainsFunc(all, func(rule any) bool {
		r, _ := rule.(map[string]any)
		has := func(name string, matches func(pattern string) bool) bool {
			patterns, _ := r[name].([]any)
			return slices.ContainsFunc(patterns, func(p any) bool {
				pattern, _ := p.(string)
				return matches(pattern)
			})
		}
		is := func(value string) func(string) bool {
			return func(pattern string) bool { return pattern == "*" || pattern == value }
		}
		return has("operations", is("UPDATE")) && has("apiGroups", is(resource.Group)) &&
			has("resources", func(pattern string) bool {
				name, sub, _ := strings.Cut(pattern, "/")
				return is(resource.Resource)(name) && is(subresource)(sub)
			})
	})
}
