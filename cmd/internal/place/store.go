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
	server  *apiserver.Server
	records storage.Store
	file    string
	adopted bool // see adopt
}

// MissingStore says what a store is whose file is not there.
type MissingStore int

const (
	CreateStore MissingStore = iota // it is created
	EmptyStore                      // it is empty and is not created: nothing will be written
	NoStore                         // an error: there is nothing in it to look at
)

// OpenRecords opens the records of a store.
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

// OpenStore opens a store. Objects that name no namespace are in the given one, or in
// default if it is empty.
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

// NewStore returns a store of records, which close closes.
func NewStore(env *process.Env, records storage.Store, file, namespace string) (*Store, error) {
	server, err := apiserver.New(env.Context, apiserver.Options{
		Store: records, DisableNamespaceLifecycle: true,
		Hooks: admission.Hooks{Convert: cannotConvert{}},
		Now:   env.Now, NewUID: func() types.UID { return types.UID(env.NewUID()) },
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

// Warnings prints the warnings of a server, each once. client-go would log them.
func Warnings(env *process.Env) rest.WarningHandler {
	return rest.NewWarningWriter(env.Stderr, rest.WarningWriterOptions{Deduplicate: true})
}

func (p *Store) String() string { return "the store " + p.file }

func (p *Store) InOrder() bool { return true }

func (p *Store) Close() error { return errors.Join(p.server.Close(), p.records.Close()) }

// AddSchemas makes the kinds known that --schema names. They are not stored.
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
	for _, d := range c.undefined() {
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
	p.forget()
	return nil
}

// cannotConvert refuses the conversions that a webhook would do: a store calls nobody.
type cannotConvert struct{}

// Convert implements [admission.Converter].
func (cannotConvert) Convert(
	_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, _ string,
) ([]*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("the object is at %q, and nobody calls the webhook that converts it",
		objects[0].GetAPIVersion())
}
