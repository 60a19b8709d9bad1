package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// Cluster is a cluster as a Place.
type Cluster struct {
	Client    *cluster.Cluster
	namespace string                           // of the command line
	defined   map[schema.GroupKind]*Definition // defined by the input
	kinds     kindCache
	// fetched has the objects that Prefetch has read; nil for an object that does not exist. The objects are encoded,
	// because decoded objects would need ten times the memory. Live uses each object once.
	fetched    map[liveKey][]byte
	rediscover sync.Once
	// isNew has the known namespaces: false for existing ones, true for ones that the input creates.
	isNew map[string]bool
	// created is the namespace that will be created if it does not exist.
	created string
	// local is true for the API server in this process: its built-in types are known, and namespaces need not exist.
	local bool
}

// NewCluster returns a cluster as a Place. Objects without a namespace get the given one.
func NewCluster(c *cluster.Cluster, namespace string) *Cluster {
	return &Cluster{
		Client: c, namespace: namespace, defined: map[schema.GroupKind]*Definition{},
		kinds: kindCache{}, isNew: map[string]bool{},
	}
}

// Creates announces that a namespace will be created, if it does not exist, before objects are applied.
func (p *Cluster) Creates(namespace string) { p.created = namespace }

// InOrder implements [Place].
func (p *Cluster) InOrder() bool { return false }

// String implements [Place].
func (p *Cluster) String() string { return "the cluster " + p.Client.String() }

// Close implements [Place].
func (p *Cluster) Close() error { return nil }

// checkNamespace returns an error if the namespace of a new object does not exist, because an apply of the object
// would fail. It returns nil if the user may not read namespaces.
func (p *Cluster) checkNamespace(ctx context.Context, t *Target) error {
	if p.local || t.Object != nil || t.Namespace == "" || t.Namespace == metav1.NamespaceDefault {
		return nil
	}
	if isNew, ok := p.isNew[t.Namespace]; ok {
		t.newNamespace = isNew
		return nil
	}
	served, err := p.Client.Kind(NamespaceKind.WithVersion("v1"))
	if err != nil {
		return err
	}
	found, err := p.Client.Get(ctx, served, "", t.Namespace)
	switch {
	case errors.Is(err, cluster.ErrNotFound) && t.Namespace == p.created:
		p.isNew[t.Namespace], t.newNamespace = true, true
		return nil
	case errors.Is(err, cluster.ErrNotFound):
		return fmt.Errorf("namespace %q does not exist: the apply fails unless it is created first", t.Namespace)
	case document.TextAt(found, "deletionTimestamp") != "":
		return fmt.Errorf("namespace %q is being deleted: the apply fails", t.Namespace)
	case err != nil && !apierrors.IsForbidden(err):
		return err
	}
	p.isNew[t.Namespace] = false
	return nil
}

// Live implements [Place].
func (p *Cluster) Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error) {
	gvk, err := document.GVKOf(intent)
	if err != nil {
		return nil, nil, err
	}
	served, unserved, err := p.Kind(gvk)
	if meta.IsNoMatchError(err) {
		return nil, nil, p.explainUnknownKind(ctx, gvk, err)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := p.target(ctx, served)
	if err != nil {
		return nil, nil, err
	}
	t.unserved = unserved
	t.Name, t.Namespace, intent, err = identify(t.Kind, intent, p.namespace, p.Client.Namespace)
	if err != nil {
		return t, nil, err
	}
	t.Asked = true
	if err := p.readLive(ctx, t); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return t, nil, err
	}
	if err := p.checkNamespace(ctx, t); err != nil {
		return t, nil, err
	}
	if t.Kind.GroupKind() == NamespaceKind {
		p.isNew[t.Name] = t.Object == nil
	}
	return t, intent, nil
}

// Visit implements [Place].
func (p *Cluster) Visit(ctx context.Context, s Selection, see func(*Target)) error {
	var errs []error
	err := p.Client.Visit(s, func(f cluster.Found) {
		t, err := p.target(ctx, f.Kind)
		if err == nil {
			t.Asked, err = namesObjects(s.Args), t.read(f.Object)
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		see(t)
	})
	return errors.Join(append([]error{err}, errs...)...)
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
	object, err := p.Client.Patch(ctx, t.served, t.Namespace, t.Name, types.JSONPatchType, m.Patch,
		cluster.WriteOptions{Manager: m.Manager})
	if err == nil {
		err = t.checkMoved(m, object)
	}
	err = withoutValues(err, t.stored)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// checkMoved returns an error if the server accepted the patch of a move, but did not move the fields. If a conversion
// fails, for example because its webhook is down, or if the object violates its schema, kube-apiserver keeps the
// managed fields as they were.
func (t *Target) checkMoved(m Moved, served map[string]any) error {
	before, err1 := managedfields.Read(Wrap(t.Object))
	wanted, err2 := managedfields.Read(Wrap(m.Object))
	after, err3 := managedfields.Read(Wrap(served))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if len(plans.OwnershipChanges(before, wanted)) == 0 || len(plans.OwnershipChanges(before, after)) > 0 {
		return nil
	}
	err := t.Kind.Typ.Validate(t.Object, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	if err == nil {
		err = errors.New("for example because it can't convert the object")
	}
	return fmt.Errorf("the server has kept the managed fields as they were: %w", err)
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
	if document.TextAt(tree, "resourceVersion") == "" {
		metadata := maps.Clone(tree["metadata"].(map[string]any))
		metadata["resourceVersion"] = document.TextAt(t.Object, "resourceVersion")
		tree = maps.Clone(tree)
		tree["metadata"] = metadata
	}
	object, err := p.Client.Update(ctx, t.served, t.Namespace, tree, o)
	return object, withoutValues(err, t.stored, tree)
}

// PointerToken escapes a name for a JSON pointer (RFC 6901).
var PointerToken = strings.NewReplacer("~", "~0", "/", "~1")

// Try sends a dry run of a write that makes the object of a target equal to tree. The write is a patch, because users
// who may move ownership and apply may lack the permission to update.
func (p *Cluster) Try(ctx context.Context, t *Target, tree map[string]any, manager string) (map[string]any, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	var patch []operation
	for name, value := range tree {
		patch = append(patch, operation{"add", "/" + PointerToken.Replace(name), value})
	}
	for name := range t.stored {
		if _, stays := tree[name]; !stays {
			patch = append(patch, operation{"remove", "/" + PointerToken.Replace(name), nil})
		}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	object, err := p.Client.Patch(about(ctx, t.stored, tree), t.served, t.Namespace, t.Name, types.JSONPatchType, data,
		cluster.WriteOptions{Manager: manager, DryRun: true})
	return object, withoutValues(err, t.stored, tree)
}

// Delete implements [Place].
func (p *Cluster) Delete(ctx context.Context, t *Target, done func(*Target)) error {
	err := withoutValues(p.Client.Delete(about(ctx, t.stored), t.served, t.Object), t.stored)
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ErrStale, err)
	case err == nil:
		done(t)
	}
	return err
}
