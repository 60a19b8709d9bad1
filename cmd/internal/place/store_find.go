package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// serveUndefined serves objects whose definition is no longer in the store, so that they can still be
// read and deleted.
func (p *Store) serveUndefined(ctx context.Context) ([]store.Resource, error) {
	resources, err := store.Resources(ctx, p.records)
	if err != nil || p.servesUndefined {
		return resources, err
	}
	p.servesUndefined = true
	served := map[schema.GroupResource]bool{}
	for _, k := range p.Client.Kinds() {
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

// kindsNamed returns the kinds with a name, which may have a group behind a dot: po, pods,
// Deployment.apps.
func (p *Store) kindsNamed(ctx context.Context, name string) ([]cluster.Kind, error) {
	called, group, hasGroup := strings.Cut(strings.ToLower(name), ".")
	matches := func() (out []cluster.Kind) {
		for _, k := range p.Client.Kinds() {
			if slices.Contains(k.Names, called) && (!hasGroup || group == k.Group) {
				out = append(out, k.Kind)
			}
		}
		return out
	}
	found := matches()
	if len(found) == 0 {
		if _, err := p.serveUndefined(ctx); err != nil {
			return nil, err
		}
		found = matches()
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("kind %q is not known", name)
	}
	return found, nil
}

// List returns the objects of a kind, by any of its names, or of all kinds if kindName is empty. An empty
// namespace means all namespaces.
func (p *Store) List(ctx context.Context, kindName, namespace string) ([]cluster.Found, error) {
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
		objects, err := p.Client.List(ctx, k, namespace)
		if err != nil {
			return nil, ServerError(err)
		}
		for _, obj := range objects {
			if uid := manifest.TextAt(obj, "uid"); !seen[uid] || uid == "" {
				seen[uid] = true
				out = append(out, cluster.Found{Kind: k, Object: obj})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.Found) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind),
			cmp.Compare(manifest.TextAt(a.Object, "namespace"), manifest.TextAt(b.Object, "namespace")),
			cmp.Compare(manifest.NameOf(a.Object), manifest.NameOf(b.Object)))
	})
	return out, nil
}

// kindsStored returns the kinds of the stored objects.
func (p *Store) kindsStored(ctx context.Context) (out []cluster.Kind, err error) {
	resources, err := p.serveUndefined(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range p.Client.Kinds() {
		if slices.ContainsFunc(resources, func(r store.Resource) bool {
			return k.Group == r.Group && k.Resource.Resource == r.Plural
		}) {
			out = append(out, k.Kind)
		}
	}
	return out, nil
}

// LookUp returns the object of a kind and name. It is an error if several kinds match.
func (p *Store) LookUp(ctx context.Context, kindName, namespace, name string) (cluster.Found, error) {
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
		obj, err := p.Client.Get(ctx, k, namespace, name)
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			continue
		case err != nil:
			return cluster.Found{}, ServerError(err)
		case found.Object != nil && manifest.TextAt(found.Object, "uid") == manifest.TextAt(obj, "uid"):
			continue // two groups serve it
		case found.Object != nil:
			return cluster.Found{}, fmt.Errorf("%q matches %s and %s; add the group", kindName+"/"+name,
				Reference(found.Kind.GroupKind(), name), Reference(k.GroupKind(), name))
		}
		found = cluster.Found{Kind: k, Object: obj}
	}
	if found.Object == nil {
		return found, fmt.Errorf("%s %w in namespace %q", Reference(kinds[0].GroupKind(), name), cluster.ErrNotFound,
			namespace)
	}
	return found, nil
}

// Find implements [Place].
func (p *Store) Find(ctx context.Context, s Selection) ([]*Target, error) {
	selector, err := labels.Parse(s.Selector)
	if err != nil {
		return nil, err
	}
	if namesObjects(s.Args) && (s.All || s.Selector != "") {
		return nil, errors.New("expected objects by name, or -A and -l, got both")
	}
	found, err := p.selectObjects(ctx, s)
	if err != nil {
		return nil, err
	}
	return p.targets(ctx, slices.DeleteFunc(found, func(f cluster.Found) bool {
		return !selector.Matches(labelsOf(f.Object))
	}), namesObjects(s.Args))
}

// selectObjects returns the objects that arguments select.
func (p *Store) selectObjects(ctx context.Context, s Selection) (out []cluster.Found, err error) {
	namespace := cmp.Or(s.Namespace, "default")
	one := func(kindName, name string) error {
		f, err := p.LookUp(ctx, kindName, namespace, name)
		out = append(out, f)
		return err
	}
	if strings.Contains(s.Args[0], "/") {
		for _, arg := range s.Args {
			kindName, name, err := ObjectArgs([]string{arg})
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
	for kindName := range strings.SplitSeq(s.Args[0], ",") {
		for _, name := range s.Args[1:] {
			if err := one(kindName, name); err != nil {
				return nil, err
			}
		}
		if len(s.Args) > 1 {
			continue
		}
		if kindName == "all" {
			kindName = ""
		}
		found, err := p.List(ctx, kindName, "")
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if in := manifest.TextAt(f.Object, "namespace"); s.All || in == namespace || in == "" {
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

// Resources returns the names of the kinds of the stored objects.
func (p *Store) Resources(ctx context.Context) (out []string) {
	kinds, err := p.kindsStored(ctx)
	if err != nil {
		return nil
	}
	for _, k := range kinds {
		out = append(out, Resource(k.GroupKind()))
	}
	slices.Sort(out)
	return out
}
