package place

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
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Cluster is a cluster.
type Cluster struct {
	Env       *process.Env
	Client    *cluster.Cluster
	namespace string // that was asked for
	// defined are the definitions of the input, and namespaces those that there are or
	// that the input makes.
	defined    map[schema.GroupKind]*Definition
	namespaces map[string]bool
	// compiled are the definitions of the server that were read.
	compiled map[schema.GroupKind]*Definition
	// local says that the server is ours: its built-in types are those that we have, and
	// objects need no Namespace.
	local bool
}

func NewCluster(env *process.Env, c *cluster.Cluster, namespace string) *Cluster {
	return &Cluster{
		Env: env, Client: c, namespace: namespace,
		defined: map[schema.GroupKind]*Definition{}, compiled: map[schema.GroupKind]*Definition{},
		namespaces: map[string]bool{},
	}
}

func (p *Cluster) Define(d *Definition) { p.defined[d.Kind] = d }

func (p *Cluster) InOrder() bool { return false }

func (p *Cluster) String() string { return "the cluster " + p.Client.String() }

func (p *Cluster) Close() error { return nil }

// target returns an object of a kind, with the kind's schema: that of its definition
// if it is a custom one, and else what the server publishes.
func (p *Cluster) target(ctx context.Context, served cluster.Kind) (*Target, error) {
	t := &Target{served: served, server: true}
	gvk := served.GroupVersionKind
	k := &Kind{GroupVersionKind: gvk, namespaced: served.Namespaced, storage: gvk.GroupVersion().String()}
	d, err := p.definition(ctx, served)
	if err != nil {
		return nil, err
	}
	if d != nil {
		version, _ := d.version(gvk.Version)
		k.hasStatus, k.converts, t.Types = version.status, !d.webhook, d.types
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
	t.Kind = k
	return t, nil
}

// definition returns the definition of a kind: that of the input, or else the
// cluster's; nil when it has none.
func (p *Cluster) definition(ctx context.Context, served cluster.Kind) (*Definition, error) {
	gk := served.GroupKind()
	if d := p.defined[gk]; d != nil {
		return d, nil
	}
	if openapi.Builtin().Versions(gk) != nil {
		return nil, nil
	}
	if d := p.compiled[gk]; d != nil {
		return d, nil
	}
	tree, err := p.Client.Definition(ctx, served)
	if err != nil || tree == nil {
		return nil, err
	}
	d, err := Define(tree)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", gk, err)
	}
	p.compiled[gk] = d
	return d, nil
}

// forget forgets what was learned from the server: kinds were defined, or are gone.
func (p *Cluster) forget() {
	clear(p.compiled)
	p.Client.Forget()
}

// Kind returns how a kind is served. One that the input defines need not be served
// yet; at a version that is not, it is read at another.
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

// hasNamespace fails when the namespace of an object that is to be created is not
// there: the apply would fail. Who may not read namespaces is not told.
func (p *Cluster) hasNamespace(ctx context.Context, t *Target) error {
	if p.local || t.Object != nil || t.Namespace == "" || t.Namespace == metav1.NamespaceDefault ||
		p.namespaces[t.Namespace] {
		return nil
	}
	served, err := p.Client.Kind(NamespaceKind.WithVersion("v1"))
	if err != nil {
		return err
	}
	found, err := p.Client.Get(ctx, served, "", t.Namespace)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
		return fmt.Errorf("namespace %q is not there: the apply fails unless it is created first", t.Namespace)
	case manifest.TextAt(found, "deletionTimestamp") != "":
		return fmt.Errorf("namespace %q is being deleted: the apply fails", t.Namespace)
	case err != nil && !apierrors.IsForbidden(err):
		return err
	}
	p.namespaces[t.Namespace] = true
	return nil
}

func (p *Cluster) Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error) {
	gvk, err := manifest.GVKOf(intent)
	if err != nil {
		return nil, nil, err
	}
	served, unserved, err := p.Kind(gvk)
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
	t.Asked = true
	if err := p.Again(ctx, t); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return t, nil, err
	}
	if err := p.hasNamespace(ctx, t); err != nil {
		return t, nil, err
	}
	if t.Kind.GroupKind() == NamespaceKind {
		p.namespaces[t.Name] = true
	}
	return t, intent, nil
}

// identify reads where the object of an intent is, and returns the intent with its
// namespace.
func (p *Cluster) identify(t *Target, intent map[string]any) (map[string]any, error) {
	name, namespace, intent, err := identify(t.Kind, intent, p.namespace, p.Client.Namespace)
	t.Name, t.Namespace = name, namespace
	return intent, err
}

// unknownKind says why the server of a store does not serve a kind.
func (p *Cluster) unknownKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	gk := gvk.GroupKind()
	versions := p.Client.Versions(gk)
	switch {
	case len(versions) == 0 && openapi.Builtin().TypeFor(gvk) != nil:
		return fmt.Errorf(".kind: %s is not a kind of object that is stored: it has no name", gk)
	case len(versions) == 0:
		return fmt.Errorf(".kind: %q of %q is not known; apply its CustomResourceDefinition first, or name its schema "+
			"with --schema",
			gvk.Kind, gvk.GroupVersion())
	}
	if served, err := p.Client.Kind(gk.WithVersion("")); err == nil {
		if d, err := p.definition(ctx, served); err == nil && d != nil {
			if _, ok := d.version(gvk.Version); ok {
				return fmt.Errorf(".apiVersion: %s is not served at %q", gk, gvk.Version)
			}
		}
	}
	return fmt.Errorf(".apiVersion: %s is not known at %q, only at %s", gk, gvk.Version, strings.Join(versions, ", "))
}

func (p *Cluster) Find(ctx context.Context, s Selection) ([]*Target, error) {
	found, err := p.Client.Find(cluster.Selection{Args: s.Args, Selector: s.Selector, Namespace: s.Namespace, All: s.All})
	targets, failed := p.targets(ctx, found, named(s.Args))
	return targets, errors.Join(err, failed)
}

// targets returns the objects that were found as targets; some may come with an error.
func (p *Cluster) targets(ctx context.Context, found []cluster.Found, asked bool) (out []*Target, err error) {
	var errs []error
	known := map[schema.GroupVersionKind]*Target{}
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
		t.Object, t.Name, t.Namespace, t.Asked = f.Object, manifest.NameOf(f.Object), manifest.TextAt(f.Object,
			"namespace"), asked
		out = append(out, &t)
	}
	return out, errors.Join(errs...)
}

func (p *Cluster) Again(ctx context.Context, t *Target) (err error) {
	if t.unserved {
		return cluster.ErrNotFound
	}
	t.Object, err = p.Client.Get(ctx, t.served, t.Namespace, t.Name)
	return err
}

func (p *Cluster) Move(ctx context.Context, t *Target, m Moved) error {
	_, err := p.Client.Patch(ctx, t.served, t.Namespace, t.Name, types.JSONPatchType, m.Patch, m.Manager)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

func (p *Cluster) Apply(
	ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	return p.Client.Apply(ctx, t.served, t.Namespace, intent, o)
}
