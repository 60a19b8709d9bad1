package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Store is a store: a cluster whose API server runs in this process, without a
// listener and without the lifecycle of namespaces.
type Store struct {
	*Cluster
	server          process.Store
	file            string
	servesUndefined bool // see serveUndefined
}

// OpenStore opens a store. Objects without a namespace are in the given one, or in default if it is
// empty.
func OpenStore(env *process.Env, file, namespace string, missing process.MissingStore) (*Store, error) {
	if env.Server == nil {
		return nil, fmt.Errorf("--store %s: this program contains no API server; use the command tenure", file)
	}
	server, err := env.Server.OpenStore(env, file, missing)
	if err != nil {
		return nil, err
	}
	return NewStore(env, server, file, namespace)
}

// NewStore returns the store that a server serves; Close closes the server.
func NewStore(env *process.Env, server process.Store, file, namespace string) (*Store, error) {
	config := server.LoopbackConfig()
	config.WarningHandlerWithContext = Warnings(env)
	c, err := cluster.Local(config)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	of := NewCluster(env, c, namespace)
	of.local = true
	return &Store{Cluster: of, server: server, file: file}, nil
}

// String implements [Place].
func (p *Store) String() string { return "the store " + p.file }

// InOrder implements [Place].
func (p *Store) InOrder() bool { return true }

// Close implements [Place].
func (p *Store) Close() error { return p.server.Close() }

// AddSchemas serves the kinds of --schema. Their definitions are not stored.
func (p *Store) AddSchemas(inputs []string) error {
	if len(inputs) == 0 {
		return nil
	}
	c := NewCatalog()
	if err := c.AddSchemas(p.Env, inputs); err != nil {
		return err
	}
	for _, d := range c.defined {
		if err := p.serve(d); err != nil {
			return fmt.Errorf("schema: %s: %w", Reference(DefinitionKind, manifest.NameOf(d.tree)), err)
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
	if err := p.server.Define(p.Env.Context, crd, types); err != nil {
		return ServerError(err)
	}
	p.Cluster.Define(d)
	p.forgetKinds()
	return nil
}

// Define implements [Place]. The kind is served until the store is closed.
func (p *Store) Define(d *Definition) {
	if p.serve(d) != nil {
		p.Cluster.Define(d) // the plan of the definition reports the error
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

// deleteTimeout is how long Remove waits until an object is deleted.
const deleteTimeout = 30 * time.Second

// Remove deletes an object at once, without its finalizers: no controllers run that would remove them. It calls done
// for it and, of a definition, for the custom resources that are deleted with it.
func (p *Store) Remove(ctx context.Context, t *Target, done func(*Target)) error {
	isDefinition := t.Kind.GroupKind() == DefinitionKind
	if isDefinition {
		d, err := Define(t.Object)
		if err != nil {
			return err
		}
		instances, _ := p.Find(ctx, Selection{Args: []string{d.Plural + "." + d.Kind.Group}, All: true})
		for _, instance := range instances {
			if err := p.Remove(ctx, instance, done); err != nil {
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

// deleteNow deletes an object and waits until it does not exist. It returns the error that the object is not found, or
// another one, and never nil.
func (p *Store) deleteNow(ctx context.Context, t *Target, isDefinition bool) error {
	if metadata, _ := t.Object["metadata"].(map[string]any); metadata["finalizers"] != nil && !isDefinition {
		patched, err := p.Client.Patch(about(ctx, t.stored), t.served, t.Namespace, t.Name, types.MergePatchType,
			[]byte(noFinalizers), "tenure")
		if err != nil {
			return withoutValues(err, t.stored)
		}
		t.set(patched)
	}
	if err := p.Delete(ctx, t); err != nil {
		return err
	}
	// The server deletes a definition once its objects are deleted.
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if err := p.Reload(ctx, t); err != nil {
			return err
		}
	}
	return errors.New("it was deleted, but still exists")
}
