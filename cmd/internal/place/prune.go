package place

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
)

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

// Candidates select objects that could be pruned.
type Candidates struct {
	Kinds       []schema.GroupVersionKind
	Namespaces  []string // of namespaced kinds
	Selector    labels.Selector
	Concurrency int
	// MustBeServed makes a kind that is not served an error. Otherwise, it has no objects.
	MustBeServed bool
}

// Candidates implements [Place].
func (p *Cluster) Candidates(ctx context.Context, c Candidates) (out []*Target, err error) {
	var namespaced, others []cluster.Kind
	for _, gvk := range c.Kinds {
		served, unserved, err := p.Kind(gvk)
		switch {
		case (meta.IsNoMatchError(err) || unserved) && !c.MustBeServed:
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
	errs := []error{p.Each(ctx, others, "", c.Concurrency, see, func() {})}
	for _, namespace := range c.Namespaces {
		errs = append(errs, p.Each(ctx, namespaced, namespace, c.Concurrency, see, func() {}))
	}
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

// Takes returns what a deletion of the object deletes too; empty for nothing.
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

// match reports whether the labels of an object match, and it is not being deleted already.
func (c *Candidates) match(t *Target) bool {
	set := labels.Set((&unstructured.Unstructured{Object: t.Object}).GetLabels())
	return manifest.TextAt(t.Object, "deletionTimestamp") == "" && c.Selector.Matches(set)
}
