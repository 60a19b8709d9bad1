package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// storePlace is a store: a cluster whose API server runs in this process, without a
// listener and without the lifecycle of namespaces.
type storePlace struct {
	*clusterPlace
	server  *apiserver.Server
	records storage.Store
	file    string
	adopted bool // see adopt
}

// missingStore says what a store is whose file is not there.
type missingStore int

const (
	createStore missingStore = iota // it is created
	emptyStore                      // it is empty and is not created: nothing will be written
	noStore                         // an error: there is nothing in it to look at
)

// openRecords opens the records of a store.
func openRecords(env *Env, file string, missing missingStore) (storage.Store, error) {
	records, err := store.Open(env.path(file), store.Options{
		MustExist: missing != createStore, Timeout: env.StoreTimeout, Now: env.Now,
	})
	switch {
	case err == nil:
		return records, nil
	case errors.Is(err, fs.ErrNotExist) && missing == emptyStore:
		return memory.New(memory.Options{}), nil
	case errors.Is(err, fs.ErrNotExist) && missing == noStore:
		return nil, fmt.Errorf("store %s: %w", file, syscall.ENOENT)
	}
	return nil, err
}

// openStore opens a store. Objects that name no namespace are in the given one, or in
// default if it is empty.
func openStore(env *Env, file, namespace string, missing missingStore) (*storePlace, error) {
	records, err := openRecords(env, file, missing)
	if err != nil {
		return nil, err
	}
	p, err := newStorePlace(env, records, file, namespace)
	if err != nil {
		return nil, errors.Join(err, records.Close())
	}
	return p, nil
}

// newStorePlace returns a store of records, which close closes.
func newStorePlace(env *Env, records storage.Store, file, namespace string) (*storePlace, error) {
	server, err := apiserver.New(env.context(), apiserver.Options{
		Store: records, DisableNamespaceLifecycle: true,
		Hooks: admission.Hooks{Convert: cannotConvert{}},
		Now:   env.Now, NewUID: func() types.UID { return types.UID(env.NewUID()) },
		Limits: apiserver.Limits{Body: maxInput},
		Log:    slog.New(slog.NewTextHandler(env.Stderr, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", file, err)
	}
	config := server.LoopbackConfig()
	config.WarningHandler = warnings(env)
	c, err := cluster.Local(config)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	of := newClusterPlace(env, c, namespace)
	of.local = true
	return &storePlace{clusterPlace: of, server: server, records: records, file: file}, nil
}

// warnings prints the warnings of a server, each once. client-go would log them.
func warnings(env *Env) rest.WarningHandler {
	return rest.NewWarningWriter(env.Stderr, rest.WarningWriterOptions{Deduplicate: true})
}

func (p *storePlace) String() string { return "the store " + p.file }

func (p *storePlace) inOrder() bool { return true }

func (p *storePlace) close() error { return errors.Join(p.server.Close(), p.records.Close()) }

// addSchemas makes the kinds known that --schema names. They are not stored.
func (p *storePlace) addSchemas(inputs []string) error {
	if len(inputs) == 0 {
		return nil
	}
	c := newCatalog()
	if err := c.addSchemas(p.env, inputs); err != nil {
		return err
	}
	for _, d := range c.defined {
		if err := p.serve(d); err != nil {
			return fmt.Errorf("schema: %s: %w", reference(definitionKind, nameOf(d.tree)), err)
		}
	}
	for _, d := range c.undefined() {
		if err := p.serve(d); err != nil {
			return fmt.Errorf("schema: %s: %w", d.kind, err)
		}
	}
	return nil
}

// serve serves the kind of a definition without storing the definition.
func (p *storePlace) serve(d *definition) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.tree, crd); err != nil {
		return err
	}
	var types *openapi.Registry
	if d.ofDocument {
		types = d.types
	}
	if err := p.server.Define(p.env.context(), crd, types); err != nil {
		return serverError(err)
	}
	p.define(d)
	p.cluster.Forget()
	return nil
}

// adopt serves the objects that no definition in the store is for any more: they can
// still be read and deleted.
func (p *storePlace) adopt(ctx context.Context) ([]store.Resource, error) {
	resources, err := store.Resources(ctx, p.records)
	if err != nil || p.adopted {
		return resources, err
	}
	p.adopted = true
	served := map[schema.GroupResource]bool{}
	for _, k := range p.cluster.Kinds() {
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
			return nil, fmt.Errorf("stored object %s: %w", r.First.Key, err)
		}
	}
	return resources, nil
}

// kindsNamed returns the kinds that people call by a name, with or without a group behind
// a dot: po, pods, Deployment.apps.
func (p *storePlace) kindsNamed(ctx context.Context, name string) ([]cluster.Kind, error) {
	called, group, hasGroup := strings.Cut(strings.ToLower(name), ".")
	matches := func() (out []cluster.Kind) {
		for _, k := range p.cluster.Kinds() {
			if slices.Contains(k.Names, called) && (!hasGroup || group == k.Group) {
				out = append(out, k.Kind)
			}
		}
		return out
	}
	found := matches()
	if len(found) == 0 {
		if _, err := p.adopt(ctx); err != nil {
			return nil, err
		}
		found = matches()
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("kind %q is not known", name)
	}
	return found, nil
}

// list returns the objects of a kind by any of its names, in a namespace, or everywhere if
// it is empty; those of all kinds for the name "".
func (p *storePlace) list(ctx context.Context, kindName, namespace string) ([]cluster.Found, error) {
	kinds, err := p.kindsStored(ctx)
	if kindName != "" {
		kinds, err = p.kindsNamed(ctx, kindName)
	}
	if err != nil {
		return nil, err
	}
	var out []cluster.Found
	seen := map[string]bool{} // objects that two groups serve, by uid
	for _, k := range kinds {
		if !k.Namespaced && namespace != "" {
			continue
		}
		objects, err := p.cluster.List(ctx, k, namespace)
		if err != nil {
			return nil, serverError(err)
		}
		for _, obj := range objects {
			if uid := textAt(obj, "uid"); !seen[uid] || uid == "" {
				seen[uid] = true
				out = append(out, cluster.Found{Kind: k, Object: obj})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.Found) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind),
			cmp.Compare(textAt(a.Object, "namespace"), textAt(b.Object, "namespace")),
			cmp.Compare(nameOf(a.Object), nameOf(b.Object)))
	})
	return out, nil
}

// kindsStored returns the kinds that the store has objects of.
func (p *storePlace) kindsStored(ctx context.Context) (out []cluster.Kind, err error) {
	resources, err := p.adopt(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range p.cluster.Kinds() {
		if slices.ContainsFunc(resources, func(r store.Resource) bool {
			return k.Group == r.Group && k.Resource.Resource == r.Plural
		}) {
			out = append(out, k.Kind)
		}
	}
	return out, nil
}

// lookUp returns the one object that goes by a kind and a name.
func (p *storePlace) lookUp(ctx context.Context, kindName, namespace, name string) (cluster.Found, error) {
	kinds, err := p.kindsNamed(ctx, kindName)
	if err != nil {
		return cluster.Found{}, err
	}
	if problems := validName(name); len(problems) > 0 {
		return cluster.Found{}, fmt.Errorf("name %q %s", name, strings.Join(problems, ", "))
	}
	namespace = cmp.Or(namespace, "default")
	var found cluster.Found
	for _, k := range kinds {
		obj, err := p.cluster.Get(ctx, k, namespace, name)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			continue
		case err != nil:
			return cluster.Found{}, serverError(err)
		case found.Object != nil && textAt(found.Object, "uid") == textAt(obj, "uid"):
			continue // two groups serve it
		case found.Object != nil:
			return cluster.Found{}, fmt.Errorf("%q is %s and %s; name the group too", kindName+"/"+name,
				reference(found.Kind.GroupKind(), name), reference(k.GroupKind(), name))
		}
		found = cluster.Found{Kind: k, Object: obj}
	}
	if found.Object == nil {
		return found, fmt.Errorf("%s %w in namespace %q", reference(kinds[0].GroupKind(), name), cluster.ErrNotFound, namespace)
	}
	return found, nil
}

func (p *storePlace) find(ctx context.Context, s selection) ([]*target, error) {
	selector, err := labels.Parse(s.selector)
	if err != nil {
		return nil, err
	}
	if named(s.args) && (s.all || s.selector != "") {
		return nil, errors.New("objects are chosen by name, or with -A and -l, and not by both")
	}
	found, err := p.chosen(ctx, s)
	if err != nil {
		return nil, err
	}
	return p.targets(ctx, slices.DeleteFunc(found, func(f cluster.Found) bool {
		return !selector.Matches(labelsOf(f.Object))
	}), named(s.args))
}

// chosen returns the objects that arguments choose.
func (p *storePlace) chosen(ctx context.Context, s selection) (out []cluster.Found, err error) {
	namespace := cmp.Or(s.namespace, "default")
	one := func(kindName, name string) error {
		f, err := p.lookUp(ctx, kindName, namespace, name)
		out = append(out, f)
		return err
	}
	if strings.Contains(s.args[0], "/") {
		for _, arg := range s.args {
			kindName, name, err := objectArgs([]string{arg})
			if err == nil && name == "" {
				err = fmt.Errorf("expected KIND/NAME, got %q", arg)
			}
			if err == nil {
				err = one(kindName, name)
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for kindName := range strings.SplitSeq(s.args[0], ",") {
		for _, name := range s.args[1:] {
			if err := one(kindName, name); err != nil {
				return nil, err
			}
		}
		if len(s.args) > 1 {
			continue
		}
		if kindName == "all" {
			kindName = ""
		}
		found, err := p.list(ctx, kindName, "")
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if in := textAt(f.Object, "namespace"); s.all || in == namespace || in == "" {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func labelsOf(obj map[string]any) labels.Set {
	metadata, _ := obj["metadata"].(map[string]any)
	given, _ := metadata["labels"].(map[string]any)
	out := labels.Set{}
	for name, value := range given {
		out[name], _ = value.(string)
	}
	return out
}

// resources returns the names of the kinds that the store has objects of.
func (p *storePlace) resources(ctx context.Context) (out []string) {
	kinds, err := p.kindsStored(ctx)
	if err != nil {
		return nil
	}
	for _, k := range kinds {
		out = append(out, resource(k.GroupKind()))
	}
	slices.Sort(out)
	return out
}

// cannotConvert refuses the conversions that a webhook would do: a store calls nobody.
type cannotConvert struct{}

// Convert implements [admission.Converter].
func (cannotConvert) Convert(
	_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, _ string,
) ([]*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("the object is at %q, and nobody calls the webhook that converts it", objects[0].GetAPIVersion())
}
