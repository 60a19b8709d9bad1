package place

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Store is a store: a cluster whose API server runs in this process, without a
// listener and without the lifecycle of namespaces.
type Store struct {
	*Cluster
	server          *apiserver.Server
	records         storage.Store
	file            string
	servesUndefined bool // see serveUndefined
}

// MissingStore says what OpenStore does if the file does not exist.
type MissingStore int

const (
	CreateStore MissingStore = iota // create it
	EmptyStore                      // use an empty store in memory, for commands that only read
	NoStore                         // return an error
)

// OpenRecords opens the storage of a store.
func OpenRecords(env *process.Env, file string, missing MissingStore) (storage.Store, error) {
	records, err := store.Open(env.Path(file), store.Options{
		MustExist: missing != CreateStore, Timeout: env.StoreTimeout, Now: env.Now,
	})
	switch {
	case err == nil:
		return records, nil
	case errors.Is(err, fs.ErrNotExist) && missing == EmptyStore:
		return memory.New(memory.Options{}), nil
	case errors.Is(err, fs.ErrNotExist) && missing == NoStore:
		return nil, fmt.Errorf("store %s: %w", file, syscall.ENOENT)
	}
	return nil, err
}

// OpenStore opens a store. Objects without a namespace are in the given one, or in default if it is
// empty.
func OpenStore(env *process.Env, file, namespace string, missing MissingStore) (*Store, error) {
	records, err := OpenRecords(env, file, missing)
	if err != nil {
		return nil, err
	}
	p, err := NewStore(env, records, file, namespace)
	if err != nil {
		return nil, errors.Join(err, records.Close())
	}
	return p, nil
}

// NewStore returns a store on records; Close closes them.
func NewStore(env *process.Env, records storage.Store, file, namespace string) (*Store, error) {
	server, err := apiserver.New(env.Context, apiserver.Options{
		Store: records, DisableNamespaceLifecycle: true,
		Hooks: admission.Hooks{Convert: cannotConvert{}}, Validation: env.Validation,
		Now: env.Now, NewUID: func() types.UID { return types.UID(env.NewUID()) },
		Limits: apiserver.Limits{Body: manifest.MaxInput},
		Log:    slog.New(slog.NewTextHandler(env.Stderr, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", file, err)
	}
	config := server.LoopbackConfig()
	config.WarningHandler = Warnings(env)
	c, err := cluster.Local(config)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	of := NewCluster(env, c, namespace)
	of.local = true
	return &Store{Cluster: of, server: server, records: records, file: file}, nil
}

// Warnings returns a handler that prints the warnings of a server, each once. client-go would log them.
func Warnings(env *process.Env) rest.WarningHandler {
	return rest.NewWarningWriter(env.Stderr, rest.WarningWriterOptions{Deduplicate: true})
}

// String implements [Place].
func (p *Store) String() string { return "the store " + p.file }

// InOrder implements [Place].
func (p *Store) InOrder() bool { return true }

// Close implements [Place].
func (p *Store) Close() error { return errors.Join(p.server.Close(), p.records.Close()) }

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
	p.Define(d)
	p.forgetDiscovery()
	return nil
}

// cannotConvert rejects conversions by webhooks: a store sends no requests.
type cannotConvert struct{}

// Convert implements [admission.Converter].
func (cannotConvert) Convert(
	_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, _ string,
) ([]*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("the object is at %q, and a store does not call conversion webhooks",
		objects[0].GetAPIVersion())
}
