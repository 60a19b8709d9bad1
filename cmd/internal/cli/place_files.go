package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// filePlace is the objects of files. What is written to it is kept in memory.
type filePlace struct {
	env       *Env
	catalog   *catalog
	namespace string
	names     string
	objects   []*target
	named     map[kindName][]*target // objects, in order
}

// kindName is what objects of one kind and name have in common, in whichever
// namespaces they are: documents are found by it.
type kindName struct {
	kind schema.GroupKind
	name string
}

// newFilePlace reads the objects of files. Those whose kind is not known are an
// error when somebody asks for their schema.
func newFilePlace(env *Env, c *catalog, files []string, namespace string) (*filePlace, error) {
	docs, err := env.readDocuments(files)
	if err != nil {
		return nil, err
	}
	p := &filePlace{env: env, catalog: c, namespace: namespace, names: strings.Join(files, ", "), named: map[kindName][]*target{}}
	for _, doc := range docs {
		err := doc.err
		var t *target
		if err == nil {
			t, err = p.target(doc.tree)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.where(), err)
		}
		// One object in a file was named with it; many were gathered somehow.
		t.object, t.asked = doc.tree, len(docs) == 1
		p.objects = append(p.objects, t)
		key := kindName{t.kind.GroupKind(), t.name}
		p.named[key] = append(p.named[key], t)
	}
	return p, nil
}

// target returns what a document is about.
func (p *filePlace) target(tree map[string]any) (*target, error) {
	gvk, err := gvkOf(tree)
	if err != nil {
		return nil, err
	}
	if metadata := tree["metadata"]; metadata != nil {
		if _, ok := metadata.(map[string]any); !ok {
			return nil, fmt.Errorf(".metadata: expected an object, got %s", describe(metadata))
		}
	}
	k, err := p.catalog.kind(gvk)
	if err != nil {
		// Without a schema nothing can be moved or planned, but blame can do.
		k = &kind{GroupVersionKind: gvk, unknown: err}
	}
	return &target{
		kind: k, types: p.catalog.types, server: true,
		name: nameOf(tree), namespace: textAt(tree, "namespace"),
	}, nil
}

func (p *filePlace) String() string { return p.names }

func (p *filePlace) define(d *definition) { p.catalog.define(d) }

func (p *filePlace) inOrder() bool { return false }

func (p *filePlace) close() error { return nil }

func (p *filePlace) live(_ context.Context, intent map[string]any) (*target, map[string]any, error) {
	t, err := p.target(intent)
	if err == nil {
		err = t.kind.unknown
	}
	if err != nil {
		return nil, nil, err
	}
	if t.name == "" {
		return t, nil, errors.New(".metadata.name: missing")
	}
	if t.namespace == "" {
		t.namespace = p.namespace
	}
	for _, o := range p.named[kindName{t.kind.GroupKind(), t.name}] {
		if o.namespace == t.namespace || o.namespace == "" || t.namespace == "" {
			t.object = o.object
			return t, intent, nil
		}
	}
	// A file with one object is about that one, and another name a mistake.
	if len(p.objects) == 1 {
		only := p.objects[0]
		if err := sameObject(only.object, intent); err != nil {
			return t, nil, err
		}
		if only.namespace != "" && t.namespace != "" && only.namespace != t.namespace {
			return t, nil, fmt.Errorf("the live object is in namespace %q, and %q was asked for", only.namespace, t.namespace)
		}
	}
	return t, intent, nil
}

func (p *filePlace) find(context.Context, selection) ([]*target, error) { return p.objects, nil }

func (p *filePlace) again(context.Context, *target) error { return nil }

func (p *filePlace) move(_ context.Context, t *target, m moved) error {
	t.object = m.object
	return nil
}

func (p *filePlace) apply(_ context.Context, t *target, intent map[string]any, manager string, force bool, subresource string) (map[string]any, error) {
	r := t.request(p.env)
	r.manager, r.apply, r.force, r.subresource = manager, true, force, subresource
	object, err := r.run(t.object, intent)
	if err != nil {
		return nil, err
	}
	t.object = object
	return object, nil
}
