// Package applier applies intents only if that would change something. It is for controllers that apply the same
// intent again and again, and have the object in a cache.
//
//	a := applier.New(manager, applier.Options{Manager: "my-controller", Force: true})
//	result, err := a.Apply(ctx, dynamicClient.Resource(gvr).Namespace(ns), cached, intent)
//
// The Applier plans the apply on the cached object ([fieldmanager.FieldManager.Plan]), and sends it unless the
// outcome of the plan is Unchanged. It also sends conflicts, invalid intents, and what can't be planned, so every
// error is the server's own.
//
// # Stale caches
//
// A cached object may be older than the stored one, and then the wrong apply may be skipped:
//
//   - If somebody changed the object and the cache has not seen it yet, an apply that would correct the change is
//     skipped. A controller that watches the object gets the event of the change later, applies again, and corrects it
//     then.
//   - If this Applier changed the object and the cache has not seen it yet, a plan on the cached object would be
//     wrong. So an Applier remembers the resourceVersion of its last write to each object, and sends all applies until
//     the cache has it.
//   - A controller that applies once and does not watch must not skip: it must read the object from the server, or
//     send the apply.
//
// A plan is exact only if it knows what the server does besides merging: its defaults, and, for built-in types, that
// it decodes objects into Go structs. See [Options].
package applier

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// Resource applies objects of one kind in one namespace. dynamic.ResourceInterface of client-go implements it;
// [FromClient] adapts controller-runtime's client.
type Resource interface {
	// Apply sends obj, an intent, and returns the stored object.
	Apply(ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions,
		subresources ...string) (*unstructured.Unstructured, error)
}

// Options configure an Applier.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners.
	Force bool
	// Subresource is the subresource of the FieldManager; empty for the main resource.
	Subresource string
	// Plan is what the server does with a merged object. Its Force is ignored. Set Semantics to typed.Canonical(nil) for
	// built-in types, and Defaults for all types with defaults.
	Plan fieldmanager.PlanOptions
}

// Stats count the applies of an Applier. Planned = Skipped + Applied if every apply was planned, and none was sent
// because of a stale cache.
type Stats struct {
	// Planned counts the applies that were planned on a cached object.
	Planned uint64
	// Skipped counts those that were not sent: the requests that were saved.
	Skipped uint64
	// Applied counts the applies that were sent.
	Applied uint64
	// Behind counts the applies that were sent because the cache was stale.
	Behind uint64
}

// Result is the result of an apply.
type Result struct {
	// Object is the stored object: the cached one if the apply was skipped, or the server's response.
	Object *unstructured.Unstructured
	// Skipped reports that nothing was sent.
	Skipped bool
	// Plan is the plan; nil if there was none.
	Plan *fieldmanager.Plan
}

// Applier applies the intents of one manager to objects of one kind. It is safe for concurrent use.
type Applier struct {
	manager *fieldmanager.FieldManager
	options Options

	mu      sync.Mutex
	stats   Stats
	written map[types.NamespacedName]string // the resourceVersions that the cache does not have yet
}

// New returns an Applier. manager must be for the version and subresource of the applies, and have the server's
// options (its reset fields and its converter).
func New(manager *fieldmanager.FieldManager, options Options) *Applier {
	options.Plan.Force = options.Force
	return &Applier{manager: manager, options: options, written: map[types.NamespacedName]string{}}
}

// Stats returns the counts so far.
func (a *Applier) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// Apply applies intent to the object of that name, unless it would not change cached, the object from a cache, or nil
// if the cache does not have it. It changes neither of them. An error is the server's.
func (a *Applier) Apply(ctx context.Context, r Resource, cached, intent *unstructured.Unstructured) (Result, error) {
	if intent == nil {
		return Result{}, errors.New("no intent")
	}
	var result Result
	if cached != nil && !a.isBehind(cached) {
		if plan, err := a.manager.Plan(cached, intent, a.options.Manager, a.options.Plan); err == nil {
			result.Plan = plan
			result.Skipped = plan.Outcome == fieldmanager.Unchanged
			a.count(func(s *Stats) {
				s.Planned++
				if result.Skipped {
					s.Skipped++
				}
			})
		}
	}
	if result.Skipped {
		result.Object = cached
		return result, nil
	}
	var subresources []string
	if a.options.Subresource != "" {
		subresources = []string{a.options.Subresource}
	}
	a.count(func(s *Stats) { s.Applied++ })
	sent := &unstructured.Unstructured{}
	sent.Object, _ = trees.Copy(intent.Object).(map[string]any)
	stored, err := r.Apply(ctx, intent.GetName(), sent,
		metav1.ApplyOptions{FieldManager: a.options.Manager, Force: a.options.Force}, subresources...)
	if err != nil {
		return result, err
	}
	result.Object = stored
	a.wrote(stored)
	return result, nil
}

func (a *Applier) count(f func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.stats)
}

// keyOf returns the namespace and name of a stored object; an intent may omit the namespace.
func keyOf(stored *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: stored.GetNamespace(), Name: stored.GetName()}
}

// wrote remembers the resourceVersion of the last write.
func (a *Applier) wrote(stored *unstructured.Unstructured) {
	if stored == nil || stored.GetResourceVersion() == "" {
		return
	}
	key, version := keyOf(stored), stored.GetResourceVersion()
	a.mu.Lock()
	defer a.mu.Unlock()
	// Responses to concurrent applies may arrive in another order.
	if order, err := resourceversion.CompareResourceVersion(a.written[key], version); err == nil && order > 0 {
		return
	}
	a.written[key] = version
}

// isBehind reports whether cached may be older than the last write. If it is not, it forgets the write, as a cache
// does not go back.
func (a *Applier) isBehind(cached *unstructured.Unstructured) bool {
	key := keyOf(cached)
	a.mu.Lock()
	defer a.mu.Unlock()
	written, ok := a.written[key]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	if cached.GetResourceVersion() == written || err == nil && order >= 0 {
		delete(a.written, key)
		return false
	}
	a.stats.Behind++
	return true
}

// Client is the part of controller-runtime's client.Client that applies; O is its client.ApplyOption.
type Client[O any] interface {
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...O) error
}

// FromClient returns a Resource that uses controller-runtime's client:
//
//	applier.FromClient(c, client.ApplyConfigurationFromUnstructured,
//		func(o metav1.ApplyOptions) []client.ApplyOption {
//			return []client.ApplyOption{&client.ApplyOptions{FieldManager: o.FieldManager, Force: &o.Force, DryRun: o.DryRun}}
//		})
//
// wrap converts an intent to the client's type, which must also store the response in it. An apply to a subresource
// is an error.
func FromClient[O any](c Client[O], wrap func(*unstructured.Unstructured) runtime.ApplyConfiguration,
	options func(metav1.ApplyOptions) []O) Resource {
	return clientResource[O]{c, wrap, options}
}

type clientResource[O any] struct {
	client  Client[O]
	wrap    func(*unstructured.Unstructured) runtime.ApplyConfiguration
	options func(metav1.ApplyOptions) []O
}

var errSubresource = errors.New("a controller-runtime client applies to subresources through another client")

func (r clientResource[O]) Apply(
	ctx context.Context, _ string, obj *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	if len(subresources) > 0 {
		return nil, errSubresource
	}
	if err := r.client.Apply(ctx, r.wrap(obj), r.options(options)...); err != nil {
		return nil, err
	}
	return obj, nil
}
