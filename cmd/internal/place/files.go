package place

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// Files are the objects of files. Writes are kept in memory.
type Files struct {
	env       *process.Env
	catalog   *Catalog
	namespace string
	names     string
	objects   []*Target
	named     map[kindName][]*Target // objects, in order
}

// kindName is the key of documents: kind and name, in any namespace.
type kindName struct {
	kind schema.GroupKind
	name string
}

// NewFiles reads the objects of files. An unknown kind is an error only when its schema is needed.
func NewFiles(env *process.Env, c *Catalog, files []string, namespace string) (*Files, error) {
	docs, err := manifest.ReadFiles(env, files...)
	if err != nil {
		return nil, err
	}
	if err := checkNames("", "", namespace); err != nil {
		return nil, err
	}
	p := &Files{env: env, catalog: c, namespace: namespace, names: strings.Join(files, ", "),
		named: map[kindName][]*Target{}}
	for _, doc := range docs {
		err := doc.Err
		if err == nil {
			// A single object was asked for by its file; several may come from a list.
			err = p.add(doc.Tree, len(docs) == 1)
		}
		if err != nil {
			return nil, doc.Wrap(err)
		}
	}
	return p, nil
}

// NewMemory returns the object, nil for none, as the object of a file. Without one, any object does not exist.
func NewMemory(env *process.Env, c *Catalog, object map[string]any) (*Files, error) {
	p := &Files{env: env, catalog: c, named: map[kindName][]*Target{}}
	if object == nil {
		return p, nil
	}
	return p, p.add(object, true)
}

func (p *Files) add(tree map[string]any, isAsked bool) error {
	t, err := p.target(tree)
	if err != nil {
		return err
	}
	t.Asked = isAsked
	p.objects = append(p.objects, t)
	key := kindName{t.Kind.GroupKind(), t.Name}
	p.named[key] = append(p.named[key], t)
	return nil
}

// target returns the target of a document.
func (p *Files) target(tree map[string]any) (*Target, error) {
	gvk, err := manifest.GVKOf(tree)
	if err != nil {
		return nil, err
	}
	if metadata := tree["metadata"]; metadata != nil {
		if _, ok := metadata.(map[string]any); !ok {
			return nil, fmt.Errorf(".metadata: expected an object, got %s", manifest.Describe(metadata))
		}
	}
	k, err := p.catalog.Kind(gvk)
	if err != nil {
		// Without a schema nothing can be moved or planned, but blame works.
		k = &Kind{GroupVersionKind: gvk, Unknown: err}
	}
	t := &Target{Kind: k, Types: p.catalog.Types, server: true}
	return t, t.read(tree)
}

// String implements [Place].
func (p *Files) String() string { return p.names }

// Define implements [Place].
func (p *Files) Define(d *Definition) { p.catalog.Define(d) }

// InOrder implements [Place].
func (p *Files) InOrder() bool { return false }

// Close implements [Place].
func (p *Files) Close() error { return nil }

// Live implements [Place].
func (p *Files) Live(_ context.Context, intent map[string]any) (*Target, map[string]any, error) {
	t, err := p.target(intent)
	if err != nil {
		return nil, nil, err
	}
	if t.Kind.Unknown != nil {
		return nil, nil, t.Kind.Unknown
	}
	if t.Name == "" {
		return t, nil, errors.New(".metadata.name: missing")
	}
	if t.Namespace == "" {
		t.Namespace = p.namespace
	}
	t.set(nil) // until it is found
	if o := p.Named(t.Kind.GroupKind(), t.Name, t.Namespace); o != nil {
		t.set(o.stored)
		return t, intent, nil
	}
	// If there is one object, the intent must be for it.
	if len(p.objects) == 1 {
		return t, nil, fmt.Errorf("the live object is %s, expected %s", p.objects[0].Title(), t.Title())
	}
	return t, intent, nil
}

// Named returns the object of a kind and a name, in a namespace if it and the object have one; nil for none.
func (p *Files) Named(kind schema.GroupKind, name, namespace string) *Target {
	for _, o := range p.named[kindName{kind, name}] {
		if o.Namespace == namespace || o.Namespace == "" || namespace == "" {
			return o
		}
	}
	return nil
}

// Kinds implements [Place].
func (p *Files) Kinds(context.Context, ...string) ([]cluster.Kind, error) { return nil, nil }

// Delete implements [Place]: there is nothing to delete in files.
func (p *Files) Delete(context.Context, *Target, func(*Target)) error { return errors.ErrUnsupported }

// Prefetch implements [Place].
func (p *Files) Prefetch(context.Context, []map[string]any, int) {}

// Find implements [Place]. It selects by labels only.
func (p *Files) Find(_ context.Context, s Selection) (out []*Target, err error) {
	selector, err := labels.Parse(s.Selector)
	if err != nil {
		return nil, err
	}
	for _, t := range p.objects {
		if selector.Matches(labels.Set((&unstructured.Unstructured{Object: t.Object}).GetLabels())) {
			out = append(out, t)
		}
	}
	return out, nil
}

// Reload implements [Place].
func (p *Files) Reload(context.Context, *Target) error { return nil }

// Move implements [Place].
func (p *Files) Move(ctx context.Context, t *Target, m Moved) error {
	t.set(m.Object)
	return nil
}

// Apply implements [Place].
func (p *Files) Apply(
	ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	return p.write(ctx, t, intent, o, true)
}

// Update implements [Place].
func (p *Files) Update(
	ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	return p.write(ctx, t, tree, o, false)
}

func (p *Files) write(
	ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions, isApply bool,
) (map[string]any, error) {
	if o.Subresource == Scale {
		return nil, errors.New("--subresource scale: expected a cluster or a store")
	}
	r := t.request(p.env, o.Subresource)
	r.Manager, r.Apply, r.Force = o.Manager, isApply, o.Force
	object, err := r.Write(ctx, t.stored, tree)
	if err == nil {
		t.set(object)
		return object, nil
	}
	if _, shown := r.Write(ctx, t.Object, secrets.Shown(tree)); shown != nil {
		return object, shown // the same error, without the values of a Secret
	}
	return object, err
}

// Defined implements [Place].
func (p *Files) Defined(tree map[string]any, _ bool) error {
	d, err := Define(tree)
	if err != nil {
		return err
	}
	p.Define(d)
	return nil
}
