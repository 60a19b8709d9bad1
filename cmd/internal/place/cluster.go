package place

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Cluster is a cluster as a Place.
type Cluster struct {
	Env       *process.Env
	Client    *cluster.Cluster
	namespace string                           // from the command line
	defined   map[schema.GroupKind]*Definition // by the input
	known     cache
	// local is true for the API server in this process: its built-in types are known, and
	// objects need no Namespace.
	local bool
}

// cache is what a cluster has read already.
type cache struct {
	// targets have no objects; they are by the kind and version that is served.
	targets map[schema.GroupVersionKind]*Target
	// objects are those that Prefetch has read; nil for one that does not exist.
	objects map[liveKey]map[string]any
	// namespaces are those that exist or that the input creates, which is the value.
	namespaces map[string]bool
}

// NewCluster returns a cluster. Objects without a namespace are in the given one.
func NewCluster(env *process.Env, c *cluster.Cluster, namespace string) *Cluster {
	return &Cluster{
		Env: env, Client: c, namespace: namespace,
		defined: map[schema.GroupKind]*Definition{},
		known:   cache{targets: map[schema.GroupVersionKind]*Target{}, namespaces: map[string]bool{}},
	}
}

// Define implements [Place].
func (p *Cluster) Define(d *Definition) {
	p.defined[d.Kind] = d
	clear(p.known.targets)
}

// InOrder implements [Place].
func (p *Cluster) InOrder() bool { return false }

// String implements [Place].
func (p *Cluster) String() string { return "the cluster " + p.Client.String() }

// Close implements [Place].
func (p *Cluster) Close() error { return nil }

// target returns a target of a kind, without an object. Its schema is that of the definition of a custom
// resource, else the one that the server publishes.
func (p *Cluster) target(ctx context.Context, served cluster.Kind) (*Target, error) {
	of := p.known.targets[served.GroupVersionKind]
	if of == nil || of.served != served {
		var err error
		if of, err = p.newTarget(ctx, served); err != nil {
			return nil, err
		}
		p.known.targets[served.GroupVersionKind] = of
	}
	t := *of
	return &t, nil
}

func (p *Cluster) newTarget(ctx context.Context, served cluster.Kind) (*Target, error) {
	t := &Target{served: served, server: true}
	gvk := served.GroupVersionKind
	k := &Kind{GroupVersionKind: gvk, namespaced: served.Namespaced, storage: gvk.GroupVersion().String()}
	d, err := p.definition(ctx, served)
	if err != nil {
		return nil, err
	}
	if d != nil {
		version, _ := d.version(gvk.Version)
		k.hasStatus, k.replicas, k.converts, t.Types = version.status, version.replicas, !d.webhook, d.types
	}
	if t.Types == nil {
		var err error
		if p.local {
			t.Types = openapi.Builtin()
		} else if t.Types, err = p.Client.Types(gvk.Group); err != nil {
			return nil, err
		}
		if k.hasStatus, err = p.Client.HasSubresource(served, "status"); err != nil {
			return nil, err
		}
	}
	if k.Typ = t.Types.TypeFor(gvk); k.Typ == nil {
		return nil, fmt.Errorf("the cluster publishes no schema of %s", gvk)
	}
	if d == nil {
		k.replicas = builtinReplicas(k.Typ)
	}
	t.Kind = k
	return t, nil
}

// definition returns the definition of a kind: that of the input, else that of the cluster; nil for a
// built-in kind.
func (p *Cluster) definition(ctx context.Context, served cluster.Kind) (*Definition, error) {
	gk := served.GroupKind()
	if d := p.defined[gk]; d != nil {
		return d, nil
	}
	if openapi.Builtin().Versions(gk) != nil {
		return nil, nil
	}
	tree, err := p.Client.Definition(ctx, served)
	if err != nil || tree == nil {
		return nil, err
	}
	d, err := Define(tree)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", gk, err)
	}
	return d, nil
}

// forgetDiscovery forgets what was read from the server, after kinds were defined or removed.
func (p *Cluster) forgetDiscovery() {
	clear(p.known.targets)
	p.Client.ForgetDiscovery()
}

// Kind returns how a kind is served. unserved is true for a kind of the input that the cluster does not
// serve yet. A version of the input that is not served yet is read at another version.
func (p *Cluster) Kind(gvk schema.GroupVersionKind) (served cluster.Kind, unserved bool, err error) {
	d := p.defined[gvk.GroupKind()]
	if d != nil {
		if version, ok := d.version(gvk.Version); !ok || !version.served {
			return served, false, fmt.Errorf(".apiVersion: the input defines %s without version %q", gvk.GroupKind(),
				gvk.Version)
		}
	}
	served, err = p.Client.Kind(gvk)
	if d == nil || !meta.IsNoMatchError(err) {
		return served, false, err
	}
	if served, err = p.Client.Kind(gvk.GroupKind().WithVersion("")); err == nil {
		served.GroupVersionKind = gvk
		return served, false, nil
	}
	if !meta.IsNoMatchError(err) {
		return served, false, err
	}
	return cluster.Kind{
		GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource(d.Plural), Namespaced: d.namespaced,
	}, true, nil
}

// hasNamespace returns an error if the namespace of a new object does not exist, because the apply would
// fail. Users who may not read namespaces get no error.
func (p *Cluster) hasNamespace(ctx context.Context, t *Target) error {
	if p.local || t.Object != nil || t.Namespace == "" || t.Namespace == metav1.NamespaceDefault {
		return nil
	}
	var isKnown bool
	if t.newNamespace, isKnown = p.known.namespaces[t.Namespace]; isKnown {
		return nil
	}
	served, err := p.Client.Kind(NamespaceKind.WithVersion("v1"))
	if err != nil {
		return err
	}
	found, err := p.Client.Get(ctx, served, "", t.Namespace)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return fmt.Errorf("namespace %q does not exist: the apply fails unless it is created first", t.Namespace)
	case manifest.TextAt(found, "deletionTimestamp") != "":
		return fmt.Errorf("namespace %q is being deleted: the apply fails", t.Namespace)
	case err != nil && !apierrors.IsForbidden(err):
		return err
	}
	p.known.namespaces[t.Namespace] = false
	return nil
}

// Live implements [Place].
func (p *Cluster) Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error) {
	gvk, err := manifest.GVKOf(intent)
	if err != nil {
		return nil, nil, err
	}
	served, unserved, err := p.Kind(gvk)
	if meta.IsNoMatchError(err) {
		err = p.unknownKind(ctx, gvk, err)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := p.target(ctx, served)
	if err != nil {
		return nil, nil, err
	}
	t.unserved = unserved
	if intent, err = p.identify(t, intent); err != nil {
		return t, nil, err
	}
	t.Asked = true
	if err := p.readLive(ctx, t); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return t, nil, err
	}
	if err := p.hasNamespace(ctx, t); err != nil {
		return t, nil, err
	}
	if t.Kind.GroupKind() == NamespaceKind {
		p.known.namespaces[t.Name] = t.Object == nil
	}
	return t, intent, nil
}

// identify sets name and namespace of the target, and returns the intent with its namespace.
func (p *Cluster) identify(t *Target, intent map[string]any) (map[string]any, error) {
	name, namespace, intent, err := identify(t.Kind, intent, p.namespace, p.Client.Namespace)
	t.Name, t.Namespace = name, namespace
	return intent, err
}

// unknownKind returns the reason why the server does not serve a kind.
func (p *Cluster) unknownKind(ctx context.Context, gvk schema.GroupVersionKind, err error) error {
	gk := gvk.GroupKind()
	if versions := p.Client.Versions(gk); len(versions) > 0 {
		if served, err := p.Client.Kind(gk.WithVersion("")); err == nil {
			if d, err := p.definition(ctx, served); err == nil && d != nil {
				if _, ok := d.version(gvk.Version); ok {
					return fmt.Errorf(".apiVersion: %s is not served at %q", gk, gvk.Version)
				}
			}
		}
		return fmt.Errorf(".apiVersion: %s is not known at %q, only at %s", gk, gvk.Version, strings.Join(versions, ", "))
	}
	var kinds []string
	all, _ := p.Client.Kinds()
	for _, k := range all {
		kinds = append(kinds, k.GroupVersionKind.Kind+" of "+k.GroupVersion().String())
	}
	meant := cluster.DidYouMean(gvk.Kind, kinds)
	switch {
	case p.local && openapi.Builtin().TypeFor(gvk) != nil:
		return fmt.Errorf(".kind: %s is not a kind of object that is stored: it has no name", gk)
	case p.local && meant == "":
		return fmt.Errorf(".kind: %q of %q is not known; apply its CustomResourceDefinition first, or pass its schema "+
			"with --schema", gvk.Kind, gvk.GroupVersion())
	}
	return fmt.Errorf("%w%s", err, meant)
}

// Find implements [Place].
func (p *Cluster) Find(ctx context.Context, s Selection) ([]*Target, error) {
	found, err := p.Client.Find(s)
	targets, failed := p.targets(ctx, found, namesObjects(s.Args))
	return targets, errors.Join(err, failed)
}

// targets returns objects as targets. It returns targets along with an error for others.
func (p *Cluster) targets(ctx context.Context, found []cluster.Found, asked bool) (out []*Target, err error) {
	var errs []error
	for _, f := range found {
		t, err := p.target(ctx, f.Kind)
		if err == nil {
			t.Asked, err = asked, t.read(f.Object)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// Reload implements [Place].
func (p *Cluster) Reload(ctx context.Context, t *Target) error {
	if t.unserved {
		return cluster.ErrNotFound
	}
	object, err := p.Client.Get(ctx, t.served, t.Namespace, t.Name)
	t.set(object)
	return err
}

// Move implements [Place].
func (p *Cluster) Move(ctx context.Context, t *Target, m Moved) error {
	ctx = about(ctx, t.stored)
	_, err := p.Client.Patch(ctx, t.served, t.Namespace, t.Name, types.JSONPatchType, m.Patch, m.Manager)
	err = withoutValues(err, t.stored)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// Apply implements [Place].
func (p *Cluster) Apply(
	ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	object, err := p.Client.Apply(about(ctx, t.stored, intent), t.served, t.Namespace, intent, o)
	return object, withoutValues(err, t.stored, intent)
}

// Update implements [Place].
func (p *Cluster) Update(
	ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	ctx = about(ctx, t.stored, tree)
	if t.Object == nil && o.Subresource == "" {
		object, err := p.Client.Create(ctx, t.served, t.Namespace, tree, o)
		return object, withoutValues(err, tree)
	}
	if manifest.TextAt(tree, "resourceVersion") == "" {
		metadata := maps.Clone(tree["metadata"].(map[string]any))
		metadata["resourceVersion"] = manifest.TextAt(t.Object, "resourceVersion")
		tree = maps.Clone(tree)
		tree["metadata"] = metadata
	}
	object, err := p.Client.Update(ctx, t.served, t.Namespace, tree, o)
	return object, withoutValues(err, t.stored, tree)
}

// definedTimeout is how long Defined waits until a kind is served.
const definedTimeout = 10 * time.Second

// Defined implements [Place]. It waits until the kind is served.
func (p *Cluster) Defined(tree map[string]any, isDryRun bool) error {
	d, err := Define(tree)
	if err != nil || isDryRun {
		return err
	}
	isServed := slices.ContainsFunc(d.versions, func(v definedVersion) bool { return v.served })
	for end := time.Now().Add(definedTimeout); isServed && time.Now().Before(end); time.Sleep(definedTimeout / 100) {
		p.forgetDiscovery()
		if _, err := p.Client.Kind(d.Kind.WithVersion("")); err == nil {
			break // else the next document of the kind says so
		}
	}
	delete(p.defined, d.Kind)
	return nil
}

// Delete deletes the object of a target as it was read. The error is [ErrStale] if it has changed since.
func (p *Cluster) Delete(ctx context.Context, t *Target) error {
	err := withoutValues(p.Client.Delete(about(ctx, t.stored), t.served, t.Object), t.stored)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}
