// Package applier applies intents only when that would change something: for
// controllers that apply the same intent again and again, and have the object in a
// cache.
//
//	a := applier.New(manager, applier.Options{Manager: "my-controller", Force: true})
//	...
//	result, err := a.Apply(ctx, dynamicClient.Resource(gvr).Namespace(ns), cached, intent)
//
// An apply is planned on the cached object ([fieldmanager.FieldManager.Plan]) and
// sent unless the plan's outcome is Unchanged. Everything else is for the server to
// answer: conflicts, invalid intents, and what can't be planned are sent too, so that
// an error is always the server's own.
//
// # Stale caches
//
// A cached object is as old as its cache, and what is skipped because of it may not
// be what the server would have skipped:
//
//   - When somebody changed the object, and the cache does not know yet, an apply that
//     would put it right is skipped. The event of that change is still to come: who
//     applies whenever the object changes, as a controller that watches it does, puts
//     it right then.
//   - When this Applier changed the object itself, and the cache does not know yet, the
//     cached object would be planned on as if that had never happened. So an Applier
//     remembers the resourceVersion that its last write of an object came to, and
//     sends everything until the cache has it.
//   - A controller that applies once and does not watch must not skip: read the object
//     from the server, or send the apply.
//
// What a server does besides merging has to be known to the plan for it to be exact:
// its defaults, and, for built-in types, that it keeps Go structs. See Options.
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

// Resource is where objects of one kind, in one namespace, are applied.
// dynamic.ResourceInterface of client-go is one; [FromClient] makes one of
// controller-runtime's client.
type Resource interface {
	// Apply sends obj, an intent, and returns the object as it is stored then.
	Apply(ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions,
		subresources ...string) (*unstructured.Unstructured, error)
}

// Options say how an Applier applies.
type Options struct {
	// Manager is the name of the field manager.
	Manager string
	// Force takes fields in conflict from their owners.
	Force bool
	// Subresource is that of the FieldManager, and empty for the object itself.
	Subresource string
	// Plan says what the server does with a merged object. Its Force does not count.
	// For built-in types Semantics should be typed.Canonical(nil), and Defaults true
	// for all types with defaults.
	Plan fieldmanager.PlanOptions
}

// Stats count what an Applier did. Planned = Skipped + Applied when every apply could
// be planned and none was sent because of a cache that lags behind.
type Stats struct {
	// Planned are the applies that were planned on a cached object.
	Planned uint64
	// Skipped are those that were not sent: the requests that were saved.
	Skipped uint64
	// Applied are the applies that were sent.
	Applied uint64
	// Behind are those of them that were sent because the cache lagged behind.
	Behind uint64
}

// Result is what became of an apply.
type Result struct {
	// Object is the object as it is stored: the cached one when the apply was
	// skipped, and else the server's answer.
	Object *unstructured.Unstructured
	// Skipped says that nothing was sent.
	Skipped bool
	// Plan is the plan, nil when there was none.
	Plan *fieldmanager.Plan
}

// Applier applies the intents of one manager to objects of one kind. It is safe for
// concurrent use.
type Applier struct {
	manager *fieldmanager.FieldManager
	options Options

	mu      sync.Mutex
	stats   Stats
	written map[types.NamespacedName]string // resourceVersions that the cache does not have yet
}

// New returns an Applier. manager must be for the version and subresource that
// intents are applied at, with the options of the server (which fields it resets, how
// it converts objects).
func New(manager *fieldmanager.FieldManager, options Options) *Applier {
	options.Plan.Force = options.Force
	return &Applier{manager: manager, options: options, written: map[types.NamespacedName]string{}}
}

// Stats returns what was done so far.
func (a *Applier) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// Apply applies intent to the object of its name, unless that would change nothing in
// cached, the object as a cache has it; nil when it has none. Neither is changed. The
// error is the server's.
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

// keyOf names an object as it is stored: an intent may leave the namespace out.
func keyOf(stored *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: stored.GetNamespace(), Name: stored.GetName()}
}

// wrote remembers what the last write came to.
func (a *Applier) wrote(stored *unstructured.Unstructured) {
	if stored == nil || stored.GetResourceVersion() == "" {
		return
	}
	key, version := keyOf(stored), stored.GetResourceVersion()
	a.mu.Lock()
	defer a.mu.Unlock()
	// Of concurrent applies the answers may overtake each other.
	if order, err := resourceversion.CompareResourceVersion(a.written[key], version); err == nil && order > 0 {
		return
	}
	a.written[key] = version
}

// isBehind reports whether cached may be older than the last write, and forgets the
// write when it is not: a cache does not go back.
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

// Client is what controller-runtime's client.Client has, O being its
// client.ApplyOption.
type Client[O any] interface {
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...O) error
}

// FromClient returns a Resource of controller-runtime's client, which knows itself
// where an object goes:
//
//	applier.FromClient(c, client.ApplyConfigurationFromUnstructured,
//		func(o metav1.ApplyOptions) []client.ApplyOption {
//			return []client.ApplyOption{&client.ApplyOptions{FieldManager: o.FieldManager, Force: &o.Force, DryRun: o.DryRun}}
//		})
//
// wrap makes an intent one that the client takes and puts the answer into. It is for
// objects themselves: an apply to a subresource is an error.
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

func (r clientResource[O]) Apply(ctx context.Context, _ string, obj *unstructured.Unstructured, options metav1.ApplyOptions,
	subresources ...string) (*unstructured.Unstructured, error) {
	if len(subresources) > 0 {
		return nil, errSubresource
	}
	if err := r.client.Apply(ctx, r.wrap(obj), r.options(options)...); err != nil {
		return nil, err
	}
	return obj, nil
}
