package place

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
)

// getsPerPage is how many reads of single objects a page of a list is worth. A list of a namespace ends
// when its pages have cost as much as reading the objects one by one.
const getsPerPage = 10

// liveKey identifies an object of a cluster, at the version that it is read at.
type liveKey struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// liveGroup is a kind in a namespace, and the names of the objects that are wanted of it.
type liveGroup struct {
	kind      cluster.Kind
	namespace string
	names     map[string]bool
}

// Prefetch implements [Place]. The objects that it read are those of the next Live, each once. Objects
// that can't be read are left to Live, which reports the error.
func (p *Cluster) Prefetch(ctx context.Context, intents []map[string]any, concurrency int) {
	groups := p.liveGroups(ctx, intents)
	found := map[liveKey]map[string]any{}
	var mu sync.Mutex
	keep := func(g *liveGroup, name string, object map[string]any) {
		mu.Lock()
		defer mu.Unlock()
		found[liveKey{g.kind.Resource, g.namespace, name}] = object
	}
	workqueue.ParallelizeUntil(context.Background(), concurrency, len(groups), func(i int) {
		g := groups[i]
		_ = p.Client.ListPages(ctx, g.kind, g.namespace, len(g.names)/getsPerPage, func(page []map[string]any) bool {
			for _, object := range page {
				if name := manifest.NameOf(object); g.names[name] {
					delete(g.names, name)
					keep(g, name, object)
				}
			}
			return len(g.names) > 0
		}, func() {
			// The list is complete: objects that are not in it do not exist.
			for name := range g.names {
				keep(g, name, nil)
			}
			clear(g.names)
		})
	})
	type rest struct {
		group *liveGroup
		name  string
	}
	var single []rest
	for _, g := range groups {
		for name := range g.names {
			single = append(single, rest{g, name})
		}
	}
	workqueue.ParallelizeUntil(context.Background(), concurrency, len(single), func(i int) {
		g, name := single[i].group, single[i].name
		object, err := p.Client.Get(ctx, g.kind, g.namespace, name)
		if err == nil || errors.Is(err, cluster.ErrNotFound) {
			keep(g, name, object)
		}
	})
	p.fetched = found
}

// liveGroups returns the kinds and namespaces of intents. It leaves out intents that can't be read.
func (p *Cluster) liveGroups(ctx context.Context, intents []map[string]any) (out []*liveGroup) {
	groups := map[liveKey]*liveGroup{}
	targets := map[schema.GroupVersionKind]*Target{} // nil for kinds that can't be read
	for _, intent := range intents {
		gvk, err := manifest.GVKOf(intent)
		if err != nil {
			continue
		}
		of, known := targets[gvk]
		if !known {
			if served, unserved, err := p.Kind(gvk); err == nil && !unserved {
				of, _ = p.target(ctx, served)
			}
			targets[gvk] = of
		}
		if of == nil {
			continue
		}
		name, namespace, _, err := identify(of.Kind, intent, p.namespace, p.Client.Namespace)
		if err != nil {
			continue
		}
		key := liveKey{resource: of.served.Resource, namespace: namespace}
		g := groups[key]
		if g == nil {
			g = &liveGroup{kind: of.served, namespace: namespace, names: map[string]bool{}}
			groups[key], out = g, append(out, g)
		}
		g.names[name] = true
	}
	return out
}

// readLive reads the object of an intent, which may have been fetched.
func (p *Cluster) readLive(ctx context.Context, t *Target) error {
	key := liveKey{t.served.Resource, t.Namespace, t.Name}
	object, ok := p.fetched[key]
	if !ok || t.unserved {
		return p.Reload(ctx, t)
	}
	delete(p.fetched, key) // the object may be written before it is read again
	if object == nil {
		return cluster.ErrNotFound
	}
	t.set(object)
	return nil
}
