package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// storePlace is a store.
type storePlace struct {
	env       *Env
	catalog   *catalog
	store     store.Store
	file      string
	namespace string // that was asked for
}

func (p *storePlace) String() string { return "the store " + p.file }

func (p *storePlace) define(d *definition) { p.catalog.define(d) }

func (p *storePlace) inOrder() bool { return true }

func (p *storePlace) close() error { return p.store.Close() }

func (p *storePlace) live(ctx context.Context, intent map[string]any) (*target, map[string]any, error) {
	k, key, intent, err := p.catalog.identify(intent, p.namespace)
	if err != nil {
		return nil, nil, err
	}
	t := &target{kind: k, types: p.catalog.types, key: key, name: key.Name, namespace: key.Namespace, asked: true}
	if err := p.again(ctx, t); err != nil && !errors.Is(err, store.ErrNotFound) {
		return t, nil, err
	}
	return t, intent, nil
}

func (p *storePlace) again(_ context.Context, t *target) (err error) {
	t.object, err = p.store.Get(t.key)
	return err
}

func (p *storePlace) find(_ context.Context, s selection) ([]*target, error) {
	selector, err := labels.Parse(s.selector)
	if err != nil {
		return nil, err
	}
	if named(s.args) && (s.all || s.selector != "") {
		return nil, errors.New("objects are chosen by name, or with -A and -l, and not by both")
	}
	objects, err := p.chosen(s)
	if err != nil {
		return nil, err
	}
	var out []*target
	for _, obj := range objects {
		if !selector.Matches(labelsOf(obj)) {
			continue
		}
		gvk, err := gvkOf(obj)
		if err != nil {
			return nil, err
		}
		k, err := p.catalog.kind(gvk)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", reference(gvk.GroupKind(), nameOf(obj)), err)
		}
		t := &target{
			kind: k, types: p.catalog.types, object: obj,
			name: nameOf(obj), namespace: textAt(obj, "namespace"), asked: named(s.args),
		}
		t.key = store.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: t.namespace, Name: t.name}
		out = append(out, t)
	}
	return out, nil
}

// chosen returns the objects that arguments choose.
func (p *storePlace) chosen(s selection) (out []map[string]any, err error) {
	namespace := s.namespace
	if namespace == "" {
		namespace = "default"
	}
	if strings.Contains(s.args[0], "/") {
		for _, arg := range s.args {
			kindName, name, err := objectArgs([]string{arg})
			if err == nil && name == "" {
				err = fmt.Errorf("expected KIND/NAME, got %q", arg)
			}
			if err != nil {
				return nil, err
			}
			_, obj, err := lookUp(p.store, kindName, namespace, name)
			if err != nil {
				return nil, err
			}
			out = append(out, obj)
		}
		return out, nil
	}
	for kindName := range strings.SplitSeq(s.args[0], ",") {
		for _, name := range s.args[1:] {
			_, obj, err := lookUp(p.store, kindName, namespace, name)
			if err != nil {
				return nil, err
			}
			out = append(out, obj)
		}
		if len(s.args) > 1 {
			continue
		}
		objects, err := p.ofKind(kindName)
		if err != nil {
			return nil, err
		}
		for _, obj := range objects {
			if in := textAt(obj, "namespace"); s.all || in == namespace || in == "" {
				out = append(out, obj)
			}
		}
	}
	return out, nil
}

// ofKind returns the objects of a kind, or all of them for the kind all.
func (p *storePlace) ofKind(name string) ([]map[string]any, error) {
	if name == "all" {
		return p.store.List(store.Key{})
	}
	return list(p.store, name, "")
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

func (p *storePlace) move(_ context.Context, t *target, m moved) error {
	_, err := p.store.Put(t.key, m.object, textAt(t.object, "resourceVersion"))
	if errors.Is(err, store.ErrStale) {
		return errStale
	}
	return err
}

func (p *storePlace) apply(_ context.Context, _ *target, intent map[string]any, manager string, force bool, subresource string) (map[string]any, error) {
	w := &writer{
		env: p.env, catalog: p.catalog, store: p.store, namespace: p.namespace,
		request: request{manager: manager, apply: true, force: force, subresource: subresource},
	}
	out, err := w.write(intent)
	return out.object, err
}

// kindNames returns the names of the kinds that a store has objects of.
func kindNames(objects []map[string]any) (out []string) {
	for _, obj := range objects {
		if gvk, err := gvkOf(obj); err == nil {
			out = append(out, resource(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
