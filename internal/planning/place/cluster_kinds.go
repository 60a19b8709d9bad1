package place

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// The lookup of a kind has two steps. The client's discovery finds the [cluster.Kind] of a group and kind, or of an
// argument such as deploy/web ([cluster.Cluster.Visit]). Then readKind adds the schema; the result is a [Target]
// without an object.

// kindCache caches kinds, as targets without objects. A target depends only on its key and on the schemas that the
// server publishes. When these schemas have changed, forgetKinds clears the cache.
type kindCache map[kindKey]*Target

type kindKey struct {
	served  cluster.Kind
	defined *Definition // defined by the input; nil for none
}

// target returns a target for a kind, without an object. The schema of a custom resource comes from its definition,
// other schemas from the server's OpenAPI documents.
func (p *Cluster) target(ctx context.Context, served cluster.Kind) (*Target, error) {
	key := kindKey{served, p.defined[served.GroupKind()]}
	if p.kinds[key] == nil {
		t, err := p.readKind(ctx, served)
		if err != nil {
			return nil, err
		}
		p.kinds[key] = t
	}
	t := *p.kinds[key]
	return &t, nil
}

// Type returns the type of a kind, and [Target.OtherPaths] of its objects. The type is nil if the kind is not served or
// its schema can't be read.
func (p *Cluster) Type(ctx context.Context, gvk schema.GroupVersionKind) (t *typed.Type, otherPaths bool) {
	served, _, err := p.Kind(gvk)
	if err != nil {
		return nil, false
	}
	target := p.targetOrUnknown(ctx, served)
	return target.Kind.Typ, target.OtherPaths()
}

// readKind reads the definition and the schema of a kind.
func (p *Cluster) readKind(ctx context.Context, served cluster.Kind) (*Target, error) {
	gvk := served.GroupVersionKind
	k := &Kind{GroupVersionKind: gvk, namespaced: served.Namespaced, storage: gvk.GroupVersion().String()}
	if versions := p.Client.Versions(gvk.GroupKind()); len(versions) > 0 {
		k.isOther = versions[0] != gvk.Version
	}
	d, err := p.definition(ctx, served)
	if err != nil {
		return nil, err
	}
	var types *openapi.Registry
	if d != nil {
		version, _ := d.version(gvk.Version)
		k.hasStatus, k.replicas, k.converts, types = version.status, version.replicas, !d.webhook, d.types
	} else {
		if types, err = p.publishedTypes(gvk.Group); err != nil {
			return nil, err
		}
		if k.hasStatus, err = p.Client.HasSubresource(served, "status"); err != nil {
			return nil, err
		}
	}
	if k.Typ = types.TypeFor(gvk); k.Typ == nil {
		return nil, fmt.Errorf("the cluster publishes no schema of %s", gvk)
	}
	if d == nil {
		k.replicas = builtinReplicas(k.Typ)
	}
	redefined := d != nil && d.Changes
	return &Target{Kind: k, Types: types, served: served, server: true, redefined: redefined}, nil
}

// publishedTypes returns the types of a group from the server's OpenAPI documents. If the server runs in this process,
// its OpenAPI documents have only built-in types.
func (p *Cluster) publishedTypes(group string) (*openapi.Registry, error) {
	if p.local {
		return openapi.Builtin(), nil
	}
	return p.Client.Types(group)
}

// definition returns the definition of a kind, from the input or else from the cluster; nil for a built-in kind.
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

// Kind returns how the cluster serves a kind. unserved is true if the input defines the kind and the cluster does not
// serve it yet. If only the version is not served yet, objects are read at another version.
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

// explainUnknownKind returns an error with the reason why the server does not serve a kind. If the reason is not known,
// it returns err.
func (p *Cluster) explainUnknownKind(ctx context.Context, gvk schema.GroupVersionKind, err error) error {
	gk := gvk.GroupKind()
	if versions := p.Client.Versions(gk); len(versions) > 0 {
		if p.definesVersion(ctx, gvk) {
			return fmt.Errorf(".apiVersion: %s is not served at %q", gk, gvk.Version)
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
		return fmt.Errorf(".kind: objects of kind %s are not stored: they have no name", gk)
	case p.local && meant == "":
		return fmt.Errorf(".kind: %q of %q is not known; apply its CustomResourceDefinition first, or pass its schema "+
			"with --schema", gvk.Kind, gvk.GroupVersion())
	}
	return fmt.Errorf("%w%s", err, meant)
}

// definesVersion reports whether the definition of a kind has a version, even if the version is not served.
func (p *Cluster) definesVersion(ctx context.Context, gvk schema.GroupVersionKind) bool {
	served, err := p.Client.Kind(gvk.GroupKind().WithVersion(""))
	if err != nil {
		return false
	}
	d, err := p.definition(ctx, served)
	if err != nil || d == nil {
		return false
	}
	_, ok := d.version(gvk.Version)
	return ok
}

// Kinds implements [Place]. Without names, it reads discovery again. With names, the client itself reads discovery
// again if it does not find a kind.
func (p *Cluster) Kinds(_ context.Context, names ...string) ([]cluster.Kind, error) {
	if len(names) > 0 {
		return p.Client.KindsNamed(names)
	}
	p.rediscoverOnce()
	return p.Client.Kinds()
}

// Define implements [Place].
func (p *Cluster) Define(d *Definition) { p.defined[d.Kind] = d }

// forgetKinds clears everything that was read about kinds. It must be called after kinds were defined or removed. No
// other code invalidates this cache and the client's caches.
func (p *Cluster) forgetKinds() {
	clear(p.kinds)
	p.Client.ForgetDiscovery()
}

// rediscoverOnce discards the client's cached discovery, once. The client shares this cache with kubectl, so the cache
// may be hours old.
func (p *Cluster) rediscoverOnce() { p.rediscover.Do(p.Client.Rediscover) }

// definedTimeout is the maximum time that Defined waits until a kind is served.
const definedTimeout = 10 * time.Second

// Defined implements [Place]. It waits until the kind is served.
func (p *Cluster) Defined(tree map[string]any, isDryRun bool) error {
	d, err := Define(tree)
	if err != nil || isDryRun {
		return err
	}
	isServed := slices.ContainsFunc(d.versions, func(v definedVersion) bool { return v.served })
	for end := time.Now().Add(definedTimeout); isServed && time.Now().Before(end); time.Sleep(definedTimeout / 100) {
		p.forgetKinds()
		if _, err := p.Client.Kind(d.Kind.WithVersion("")); err == nil {
			break // after the timeout, the next document of the kind reports the error
		}
	}
	delete(p.defined, d.Kind)
	return nil
}
