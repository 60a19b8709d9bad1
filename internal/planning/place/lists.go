package place

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
)

// Each calls see with the objects of the given kinds that match the selection's namespace, labels and fields, and calls
// done after each kind. Without a namespace, it lists all namespaces. It lists page by page, at most concurrency kinds
// at a time, and keeps no objects. Calls of see and done do not overlap. If the schema of a kind can't be read, its
// targets have no types. The error joins the errors of kinds that could not be listed.
func (p *Cluster) Each(
	ctx context.Context, kinds []cluster.Kind, s Selection, concurrency int, see func(*Target), done func(),
) error {
	var mu sync.Mutex
	errs := make([]error, len(kinds))
	workqueue.ParallelizeUntil(context.Background(), concurrency, len(kinds), func(i int) {
		k, in := kinds[i], s
		if !k.Namespaced {
			in.Namespace = ""
		}
		var target *Target
		err := p.Client.ListPages(Quietly(ctx), k, in, math.MaxInt, func(page []map[string]any) bool {
			mu.Lock()
			defer mu.Unlock()
			for _, object := range page {
				if target == nil {
					target = p.targetOrUnknown(ctx, k)
				}
				t := *target
				if err := t.read(object); err != nil {
					errs[i] = fmt.Errorf("%s: %w", k.Resource.GroupResource(), err)
					continue
				}
				see(&t)
			}
			return ctx.Err() == nil
		}, func() {})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", k.Resource.GroupResource(), err)
		}
		done()
	})
	return errors.Join(append(errs, ctx.Err())...)
}

// targetOrUnknown returns a target for a kind, without types if they can't be read.
func (p *Cluster) targetOrUnknown(ctx context.Context, k cluster.Kind) *Target {
	t, err := p.target(ctx, k)
	if err != nil {
		return &Target{Kind: &Kind{GroupVersionKind: k.GroupVersionKind, Unknown: err}, served: k}
	}
	return t
}

// IsServed implements [Place]. It reads discovery again.
func (p *Cluster) IsServed(gvk schema.GroupVersionKind) bool {
	p.rediscoverOnce()
	return slices.Contains(p.Client.Versions(gvk.GroupKind()), gvk.Version)
}

// IsServed implements [Place]. A kind is served if the catalog has its schema. For API groups without any schema,
// IsServed returns true, because nothing is known about these groups.
func (p *Files) IsServed(gvk schema.GroupVersionKind) bool {
	known := false
	for _, k := range p.catalog.Types.Kinds() {
		if k == gvk {
			return true
		}
		known = known || k.Group == gvk.Group
	}
	return !known
}

// getsPerPage is the number of gets that cost as much as one page of a list. The method fetch stops a list once its
// pages have cost as much as getting the objects one by one.
const getsPerPage = 10

// liveKey identifies an object of a cluster, at the version at which it is read.
type liveKey struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// liveGroup is a kind in a namespace, with the names of objects to read.
type liveGroup struct {
	kind      cluster.Kind
	namespace string
	names     map[string]bool
}

// Prefetch implements [Place]. Later calls of Live take the objects that Prefetch has read, each object once. If an
// object can't be read, Live reads it again and returns the error.
func (p *Cluster) Prefetch(ctx context.Context, intents []map[string]any, concurrency int) {
	p.fetched = p.fetch(ctx, p.liveGroups(ctx, intents), concurrency)
}

// fetch reads the objects of groups as JSON. It lists objects where lists are cheaper than gets. The result is nil for
// objects that do not exist, and has no entry for objects that can't be read.
func (p *Cluster) fetch(ctx context.Context, groups []*liveGroup, concurrency int) map[liveKey][]byte {
	found := map[liveKey][]byte{}
	var mu sync.Mutex
	keep := func(g *liveGroup, name string, object map[string]any) {
		var data []byte
		if object != nil {
			var err error
			if data, err = json.Marshal(object); err != nil {
				return
			}
		}
		mu.Lock()
		defer mu.Unlock()
		found[liveKey{g.kind.Resource, g.namespace, name}] = data
	}
	workqueue.ParallelizeUntil(context.Background(), concurrency, len(groups), func(i int) {
		g := groups[i]
		in, limit := Selection{Namespace: g.namespace}, len(g.names)/getsPerPage
		_ = p.Client.ListPages(ctx, g.kind, in, limit, func(page []map[string]any) bool {
			for _, object := range page {
				if name := document.NameOf(object); g.names[name] {
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
	return found
}

// liveGroups returns the objects of intents in groups by kind and namespace. It omits intents that can't be read.
func (p *Cluster) liveGroups(ctx context.Context, intents []map[string]any) (out []*liveGroup) {
	groups := liveGroups{}
	targets := map[schema.GroupVersionKind]*Target{} // nil if the kind can't be read
	for _, intent := range intents {
		gvk, err := document.GVKOf(intent)
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
		out = groups.add(out, of.served, namespace, name)
	}
	return out
}

// liveGroups has the groups by a liveKey whose name is empty.
type liveGroups map[liveKey]*liveGroup

// add adds an object to its group. It appends new groups to list.
func (groups liveGroups) add(list []*liveGroup, kind cluster.Kind, namespace, name string) []*liveGroup {
	key := liveKey{resource: kind.Resource, namespace: namespace}
	g := groups[key]
	if g == nil {
		g = &liveGroup{kind: kind, namespace: namespace, names: map[string]bool{}}
		groups[key], list = g, append(list, g)
	}
	g.names[name] = true
	return list
}

// Reference names an object. For a cluster-scoped object, Namespace is ignored.
type Reference struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// Objects implements [Place].
func (p *Cluster) Objects(ctx context.Context, refs []Reference, concurrency int) (out []*Target, err error) {
	var list []*liveGroup
	var targets []*Target
	var errs []error
	groups := liveGroups{}
	for _, r := range refs {
		t, err := p.named(ctx, r)
		if meta.IsNoMatchError(err) && p.isDiscovered() {
			out = append(out, r.missing())
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", document.Reference(r.GroupKind(), r.Name), err))
			continue
		}
		list = groups.add(list, t.served, t.Namespace, t.Name)
		targets = append(targets, t)
	}
	fetched := p.fetch(ctx, list, concurrency)
	for _, t := range targets {
		if err := p.readFetched(ctx, t, fetched); err != nil && !errors.Is(err, cluster.ErrNotFound) {
			errs = append(errs, fmt.Errorf("%s: %w", t.Title(), err))
			continue
		}
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// missing returns the target of an object that does not exist, without a schema.
func (r Reference) missing() *Target {
	return &Target{Kind: &Kind{GroupVersionKind: r.GroupVersionKind}, Name: r.Name, Namespace: r.Namespace}
}

// isDiscovered reports whether all API groups can be discovered. If so, an unknown kind has no objects.
func (p *Cluster) isDiscovered() bool {
	_, err := p.Client.Kinds()
	return err == nil
}

// named returns the target of a reference, without its object. If the version is not served, it uses another version.
func (p *Cluster) named(ctx context.Context, r Reference) (*Target, error) {
	served, _, err := p.Kind(r.GroupVersionKind)
	if meta.IsNoMatchError(err) {
		served, _, err = p.Kind(r.GroupKind().WithVersion(""))
	}
	if err == nil {
		err = checkNames(r.Kind, r.Name, r.Namespace)
	}
	if err != nil {
		return nil, err
	}
	t, err := p.target(ctx, served)
	if err == nil {
		t.Name = r.Name
		if served.Namespaced {
			t.Namespace = r.Namespace
		}
	}
	return t, err
}

// Objects implements [Place]. Targets without an object have no schema.
func (p *Files) Objects(_ context.Context, refs []Reference, _ int) (out []*Target, err error) {
	for _, r := range refs {
		t := p.Named(r.GroupKind(), r.Name, r.Namespace)
		if t == nil {
			t = r.missing()
		}
		out = append(out, t)
	}
	return out, nil
}

// readLive reads the object of an intent, or takes it from the fetched objects.
func (p *Cluster) readLive(ctx context.Context, t *Target) error {
	return p.readFetched(ctx, t, p.fetched)
}

// readFetched takes an object from fetched, once. If fetched does not have the object, readFetched reads it.
func (p *Cluster) readFetched(ctx context.Context, t *Target, fetched map[liveKey][]byte) error {
	key := liveKey{t.served.Resource, t.Namespace, t.Name}
	data, ok := fetched[key]
	if !ok || t.unserved {
		return p.Reload(ctx, t)
	}
	delete(fetched, key) // the next read may be after a write
	if data == nil {
		return cluster.ErrNotFound
	}
	object, err := document.Decode(data)
	if err == nil {
		t.set(object)
	}
	return err
}

// PrunedKinds are the kinds that kubectl apply --prune deletes by default.
var PrunedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Endpoints"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "PersistentVolume"},
	{Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "ReplicationController"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
}

// Candidates selects objects that could be pruned, including objects that are being deleted.
type Candidates struct {
	Kinds       []schema.GroupVersionKind
	Namespaces  []string // for namespaced kinds
	Selector    labels.Selector
	Concurrency int
	Except      map[Key]bool // objects that are not pruned
	// MustBeServed makes Candidates return an error for a kind that is neither served nor defined by the input.
	// Otherwise, a kind that is not served is treated as having no objects.
	MustBeServed bool
}

// Candidates implements [Place]. The objects are sorted by kind, name and namespace.
func (p *Cluster) Candidates(ctx context.Context, c Candidates) (out []*Target, err error) {
	var namespaced, others []cluster.Kind
	for _, gvk := range c.Kinds {
		served, unserved, err := p.Kind(gvk)
		switch {
		case unserved || meta.IsNoMatchError(err) && !c.MustBeServed: // a kind that is not served has no objects
		case err != nil:
			return nil, err
		case served.Namespaced:
			namespaced = append(namespaced, served)
		default:
			others = append(others, served)
		}
	}
	see := func(t *Target) {
		if c.match(t) {
			out = append(out, t)
		}
	}
	errs := []error{p.Each(ctx, others, Selection{}, c.Concurrency, see, func() {})}
	for _, namespace := range c.Namespaces {
		in := Selection{Namespace: namespace}
		errs = append(errs, p.Each(ctx, namespaced, in, c.Concurrency, see, func() {}))
	}
	slices.SortFunc(out, func(a, b *Target) int {
		return cmp.Or(cmp.Compare(a.Reference(), b.Reference()), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out, errors.Join(errs...)
}

// Candidates implements [Place].
func (p *Files) Candidates(_ context.Context, c Candidates) (out []*Target, err error) {
	for _, t := range p.objects {
		isKind := slices.ContainsFunc(c.Kinds, func(gvk schema.GroupVersionKind) bool {
			return gvk.GroupKind() == t.Kind.GroupKind()
		})
		if isKind && (t.Namespace == "" || slices.Contains(c.Namespaces, t.Namespace)) && c.match(t) {
			out = append(out, t)
		}
	}
	return out, nil
}

// Takes describes what else is deleted if the object is deleted; empty if nothing else is deleted.
func (t *Target) Takes() string {
	switch t.Kind.GroupKind() {
	case NamespaceKind:
		return "with everything in it"
	case DefinitionKind:
		return "with all its custom resources"
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"}:
		return "its data may be lost"
	}
	return ""
}

// match reports whether the labels of an object match, and it is not in Except.
func (c *Candidates) match(t *Target) bool {
	set := labels.Set((&unstructured.Unstructured{Object: t.Object}).GetLabels())
	return c.Selector.Matches(set) && !c.Except[KeyOf(t)]
}
