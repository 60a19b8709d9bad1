package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Store is a store. It is like a cluster whose API server runs in this process, without a listener and without the
// lifecycle of namespaces.
type Store struct {
	*Cluster
	ctx             context.Context // the command's context
	server          Server
	file            string
	servesUndefined bool // see serveUndefined
}

// Server is an API server in this process, without a listener. Close also closes its storage.
type Server interface {
	// LoopbackConfig returns a client configuration for the server.
	LoopbackConfig() *rest.Config
	// Define serves the kind of a definition without storing the definition. If types is nil, the types come from the
	// definition's schema.
	Define(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, types *openapi.Registry) error
	// Resources returns the resources that have stored objects, in the order of their keys.
	Resources() ([]StoredResource, error)
	Close() error
}

// StoredResource is a resource that has stored objects.
type StoredResource struct {
	Group, Plural string // Group is empty for the core group
	Namespaced    bool
	First         string // key of the first object
	Kind          metav1.TypeMeta
}

// NewStore returns the store of a server. It writes the server's warnings to warnings. Objects without a namespace
// get the given one, or "default" if it is empty. On an error, NewStore closes the server.
func NewStore(ctx context.Context, server Server, file, namespace string, warnings io.Writer) (*Store, error) {
	config := server.LoopbackConfig()
	config.WarningHandlerWithContext = Warnings(warnings)
	c, err := cluster.Local(config)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	of := NewCluster(c, namespace)
	of.local = true
	return &Store{Cluster: of, ctx: ctx, server: server, file: file}, nil
}

// ClusterOf returns a cluster or a store as a Cluster; nil for files.
func ClusterOf(p Place) *Cluster {
	switch p := p.(type) {
	case *Cluster:
		return p
	case *Store:
		return p.Cluster
	}
	return nil
}

// String implements [Place].
func (p *Store) String() string { return "the store " + p.file }

// InOrder implements [Place].
func (p *Store) InOrder() bool { return true }

// Close implements [Place].
func (p *Store) Close() error { return p.server.Close() }

// AddSchemas serves the kinds of --schema, without storing their definitions.
func (p *Store) AddSchemas(inputs []document.Input) error {
	if len(inputs) == 0 {
		return nil
	}
	c := NewCatalog()
	if err := c.AddSchemas(inputs); err != nil {
		return err
	}
	for _, d := range c.defined {
		if err := p.serve(d); err != nil {
			return fmt.Errorf("schema: %s: %w", document.Reference(DefinitionKind, document.NameOf(d.tree)), err)
		}
	}
	for _, d := range c.undefinedKinds() {
		if err := p.serve(d); err != nil {
			return fmt.Errorf("schema: %s: %w", d.Kind, err)
		}
	}
	return nil
}

// serve serves the kind of a definition without storing the definition.
func (p *Store) serve(d *Definition) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.tree, crd); err != nil {
		return err
	}
	var types *openapi.Registry
	if d.ofDocument {
		types = d.types
	}
	if err := p.server.Define(p.ctx, crd, types); err != nil {
		return ServerError(err)
	}
	d.Changes = false // the server uses it from now on
	p.Cluster.Define(d)
	p.forgetKinds()
	return nil
}

// Define implements [Place]. The kind is served until the store is closed.
func (p *Store) Define(d *Definition) {
	if p.serve(d) != nil {
		p.Cluster.Define(d) // the definition's plan reports the error
	}
}

// Defined implements [Place]. In a dry run, a definition is served without being stored.
func (p *Store) Defined(tree map[string]any, isDryRun bool) error {
	p.forgetKinds()
	if !isDryRun {
		return nil
	}
	d, err := Define(tree)
	if err != nil {
		return err
	}
	return p.serve(d)
}

// noFinalizers is the patch that removes the finalizers of an object.
const noFinalizers = `{"metadata":{"finalizers":null}}`

// deleteTimeout is the maximum time that Delete waits until an object is deleted.
const deleteTimeout = 30 * time.Second

// Delete implements [Place]. It deletes an object immediately and removes its finalizers, because no controllers run
// that would do so. A definition is deleted together with its custom resources.
func (p *Store) Delete(ctx context.Context, t *Target, done func(*Target)) error {
	isDefinition := t.Kind.GroupKind() == DefinitionKind
	if isDefinition {
		d, err := Define(t.Object)
		if err != nil {
			return err
		}
		instances, _ := Find(ctx, p, Selection{Args: []string{d.Plural + "." + d.Kind.Group}, All: true})
		for _, instance := range instances {
			if err := p.Delete(ctx, instance, done); err != nil {
				return err
			}
		}
	}
	err := p.deleteNow(ctx, t, isDefinition)
	if errors.Is(err, cluster.ErrNotFound) || apierrors.IsNotFound(err) {
		done(t)
		return nil
	}
	return err
}

// deleteNow deletes an object and waits until it no longer exists. It never returns nil: after a deletion, it returns
// the NotFound error of its last read, and otherwise the reason why the object was not deleted.
func (p *Store) deleteNow(ctx context.Context, t *Target, isDefinition bool) error {
	if metadata, _ := t.Object["metadata"].(map[string]any); metadata["finalizers"] != nil && !isDefinition {
		patched, err := p.Client.Patch(about(ctx, t.stored), t.served, t.Namespace, t.Name, types.MergePatchType,
			[]byte(noFinalizers), cluster.WriteOptions{Manager: "tenure"})
		if err != nil {
			return withoutValues(err, t.stored)
		}
		t.set(patched)
	}
	if err := p.Cluster.Delete(ctx, t, func(*Target) {}); err != nil {
		return err
	}
	// The server deletes a definition after its objects.
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if err := p.Reload(ctx, t); err != nil {
			return err
		}
	}
	return errors.New("it was deleted, but still exists")
}

// serveUndefined serves objects whose definition is missing from the store, so that they can be read and deleted.
func (p *Store) serveUndefined(ctx context.Context) ([]StoredResource, error) {
	resources, err := p.server.Resources()
	if err != nil || p.servesUndefined {
		return resources, err
	}
	p.servesUndefined = true
	served := map[schema.GroupResource]bool{}
	kinds, err := p.Client.Kinds()
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		served[k.Resource.GroupResource()] = true
	}
	for _, r := range resources {
		if served[schema.GroupResource{Group: r.Group, Resource: r.Plural}] {
			continue
		}
		d, err := definitionOf(r)
		if err == nil {
			err = p.serve(d)
		}
		if err != nil {
			return nil, fmt.Errorf("stored object %s: %w", r.First, err)
		}
	}
	return resources, nil
}

// Kinds implements [Place]. Without names, it returns the kinds of the stored objects, sorted.
func (p *Store) Kinds(ctx context.Context, names ...string) (out []cluster.Kind, err error) {
	if len(names) > 0 {
		return p.Cluster.Kinds(ctx, names...)
	}
	resources, err := p.serveUndefined(ctx)
	if err != nil {
		return nil, err
	}
	kinds, err := p.Client.Kinds()
	for _, k := range kinds {
		if slices.ContainsFunc(resources, func(r StoredResource) bool {
			return k.Group == r.Group && k.Resource.Resource == r.Plural
		}) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out, err
}

// Visit implements [Place]. Without arguments, and for the kind "all", it visits objects of all kinds.
func (p *Store) Visit(ctx context.Context, s Selection, see func(*Target)) error {
	kinds, err := p.Kinds(ctx) // also serves kinds without a definition
	if err != nil {
		return err
	}
	if len(s.Args) == 0 || len(s.Args) == 1 && s.Args[0] == "all" {
		if len(kinds) == 0 {
			return nil
		}
		var names []string
		for _, k := range kinds {
			names = append(names, k.Resource.Resource+"."+k.Resource.Version+"."+k.Resource.Group)
		}
		s.Args = []string{strings.Join(names, ",")}
	}
	return p.Cluster.Visit(ctx, s, see)
}
