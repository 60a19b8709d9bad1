package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// clusterPlace is a cluster.
type clusterPlace struct {
	env       *Env
	cluster   *cluster.Cluster
	namespace string // that was asked for
	// defined are the definitions of the input, and namespaces those that there are or
	// that the input makes.
	defined    map[schema.GroupKind]*definition
	namespaces map[string]bool
	// local says that the server is ours: its built-in types are those that we have, and
	// objects need no Namespace.
	local bool
}

func newClusterPlace(env *Env, c *cluster.Cluster, namespace string) *clusterPlace {
	return &clusterPlace{
		env: env, cluster: c, namespace: namespace,
		defined: map[schema.GroupKind]*definition{}, namespaces: map[string]bool{},
	}
}

func (p *clusterPlace) define(d *definition) { p.defined[d.kind] = d }

func (p *clusterPlace) inOrder() bool { return false }

func (p *clusterPlace) String() string { return "the cluster " + p.cluster.String() }

func (p *clusterPlace) close() error { return nil }

// target returns an object of a kind, with the kind's schema: that of its definition
// if it is a custom one, and else what the server publishes.
func (p *clusterPlace) target(ctx context.Context, served cluster.Kind) (*target, error) {
	t := &target{served: served, server: true}
	gvk := served.GroupVersionKind
	k := &kind{GroupVersionKind: gvk, namespaced: served.Namespaced, storage: gvk.GroupVersion().String()}
	d, err := p.definition(ctx, served)
	if err != nil {
		return nil, err
	}
	if d != nil {
		version, _ := d.version(gvk.Version)
		k.hasStatus, k.converts, t.types = version.status, !d.webhook, d.types
	}
	if t.types == nil {
		var err error
		if p.local {
			t.types = openapi.Builtin()
		} else if t.types, err = p.cluster.Types(gvk.Group); err != nil {
			return nil, err
		}
		if k.hasStatus, err = p.cluster.HasSubresource(served, "status"); err != nil {
			return nil, err
		}
	}
	if k.typ = t.types.TypeFor(gvk); k.typ == nil {
		return nil, fmt.Errorf("the cluster publishes no schema of %s", gvk)
	}
	t.kind = k
	return t, nil
}

// definition returns the definition of a kind: that of the input, or else the
// cluster's; nil when it has none.
func (p *clusterPlace) definition(ctx context.Context, served cluster.Kind) (*definition, error) {
	gk := served.GroupKind()
	if d := p.defined[gk]; d != nil {
		return d, nil
	}
	if openapi.Builtin().Versions(gk) != nil {
		return nil, nil
	}
	tree, err := p.cluster.Definition(ctx, served)
	if err != nil || tree == nil {
		return nil, err
	}
	d, err := define(tree)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", gk, err)
	}
	return d, nil
}

// kind returns how a kind is served. One that the input defines need not be served
// yet; at a version that is not, it is read at another.
func (p *clusterPlace) kind(gvk schema.GroupVersionKind) (served cluster.Kind, unserved bool, err error) {
	d := p.defined[gvk.GroupKind()]
	if d != nil {
		if version, ok := d.version(gvk.Version); !ok || !version.served {
			return served, false, fmt.Errorf(".apiVersion: the input defines %s without version %q", gvk.GroupKind(), gvk.Version)
		}
	}
	served, err = p.cluster.Kind(gvk)
	if d == nil || !meta.IsNoMatchError(err) {
		return served, false, err
	}
	if served, err = p.cluster.Kind(gvk.GroupKind().WithVersion("")); err == nil {
		served.GroupVersionKind = gvk
		return served, false, nil
	}
	if !meta.IsNoMatchError(err) {
		return served, false, err
	}
	return cluster.Kind{
		GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource(d.plural), Namespaced: d.namespaced,
	}, true, nil
}

// hasNamespace fails when the namespace of an object that is to be created is not
// there: the apply would fail. Who may not read namespaces is not told.
func (p *clusterPlace) hasNamespace(ctx context.Context, t *target) error {
	if p.local || t.object != nil || t.namespace == "" || t.namespace == metav1.NamespaceDefault || p.namespaces[t.namespace] {
		return nil
	}
	served, err := p.cluster.Kind(namespaceKind.WithVersion("v1"))
	if err != nil {
		return err
	}
	found, err := p.cluster.Get(ctx, served, "", t.namespace)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return fmt.Errorf("namespace %q is not there: the apply fails unless it is created first", t.namespace)
	case textAt(found, "deletionTimestamp") != "":
		return fmt.Errorf("namespace %q is being deleted: the apply fails", t.namespace)
	case err != nil && !apierrors.IsForbidden(err):
		return err
	}
	p.namespaces[t.namespace] = true
	return nil
}

func (p *clusterPlace) live(ctx context.Context, intent map[string]any) (*target, map[string]any, error) {
	gvk, err := gvkOf(intent)
	if err != nil {
		return nil, nil, err
	}
	served, unserved, err := p.kind(gvk)
	if p.local && meta.IsNoMatchError(err) {
		err = p.unknownKind(ctx, gvk)
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
	t.asked = true
	if err := p.again(ctx, t); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return t, nil, err
	}
	if err := p.hasNamespace(ctx, t); err != nil {
		return t, nil, err
	}
	if t.kind.GroupKind() == namespaceKind {
		p.namespaces[t.name] = true
	}
	return t, intent, nil
}

// identify reads where the object of an intent is, and returns the intent with its
// namespace.
func (p *clusterPlace) identify(t *target, intent map[string]any) (map[string]any, error) {
	name, namespace, intent, err := identify(t.kind, intent, p.namespace, p.cluster.Namespace)
	t.name, t.namespace = name, namespace
	return intent, err
}

// unknownKind says why the server of a store does not serve a kind.
func (p *clusterPlace) unknownKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	gk := gvk.GroupKind()
	versions := p.cluster.Versions(gk)
	switch {
	case len(versions) == 0 && openapi.Builtin().TypeFor(gvk) != nil:
		return fmt.Errorf(".kind: %s is not a kind of object that is stored: it has no name", gk)
	case len(versions) == 0:
		return fmt.Errorf(".kind: %q of %q is not known; apply its CustomResourceDefinition first, or name its schema with --schema",
			gvk.Kind, gvk.GroupVersion())
	}
	if served, err := p.cluster.Kind(gk.WithVersion("")); err == nil {
		if d, err := p.definition(ctx, served); err == nil && d != nil {
			if _, ok := d.version(gvk.Version); ok {
				return fmt.Errorf(".apiVersion: %s is not served at %q", gk, gvk.Version)
			}
		}
	}
	return fmt.Errorf(".apiVersion: %s is not known at %q, only at %s", gk, gvk.Version, strings.Join(versions, ", "))
}

func (p *clusterPlace) find(ctx context.Context, s selection) ([]*target, error) {
	found, err := p.cluster.Find(cluster.Selection{Args: s.args, Selector: s.selector, Namespace: s.namespace, All: s.all})
	targets, failed := p.targets(ctx, found, named(s.args))
	return targets, errors.Join(err, failed)
}

// targets returns the objects that were found as targets; some may come with an error.
func (p *clusterPlace) targets(ctx context.Context, found []cluster.Found, asked bool) (out []*target, err error) {
	var errs []error
	known := map[schema.GroupVersionKind]*target{}
	for _, f := range found {
		of := known[f.Kind.GroupVersionKind]
		if of == nil {
			if of, err = p.target(ctx, f.Kind); err != nil {
				errs = append(errs, err)
				continue
			}
			known[f.Kind.GroupVersionKind] = of
		}
		t := *of
		t.object, t.name, t.namespace, t.asked = f.Object, nameOf(f.Object), textAt(f.Object, "namespace"), asked
		out = append(out, &t)
	}
	return out, errors.Join(errs...)
}

func (p *clusterPlace) again(ctx context.Context, t *target) (err error) {
	if t.unserved {
		return cluster.ErrNotFound
	}
	t.object, err = p.cluster.Get(ctx, t.served, t.namespace, t.name)
	return err
}

func (p *clusterPlace) move(ctx context.Context, t *target, m moved) error {
	_, err := p.cluster.Patch(ctx, t.served, t.namespace, t.name, types.JSONPatchType, m.patch, m.manager)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}

func (p *clusterPlace) apply(ctx context.Context, t *target, intent map[string]any, manager string, force bool, subresource string) (map[string]any, error) {
	return p.cluster.Apply(ctx, t.served, t.namespace, intent,
		cluster.WriteOptions{Manager: manager, Force: force, Subresource: subresource})
}
