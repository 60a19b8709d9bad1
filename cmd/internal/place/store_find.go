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

// adopt serves the objects that no definition in the store is for any more: they can
// still be read and deleted.
func (p *Store) adopt(ctx context.Context) ([]store.Resource, error) {
	resources, err := store.Resources(ctx, p.records)
	if err != nil || p.adopted {
		return resources, err
	}
	p.adopted = true
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

// kindsNamed returns the kinds that people call by a name, with or without a group behind
// a dot: po, pods, Deployment.apps.
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

// List returns the objects of a kind by any of its names, in a namespace, or everywhere if
// it is empty; those of all kinds for the name "".
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

// kindsStored returns the kinds that the store has objects of.
func (p *Store) kindsStored(ctx context.Context) (out []cluster.Kind, err error) {
	resources, err := p.adopt(ctx)
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

// LookUp returns the one object that goes by a kind and a name.
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
			return cluster.Found{}, fmt.Errorf("%q is %s and %s; name the group too", kindName+"/"+name,
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

func (p *Store) Find(ctx context.Context, s Selection) ([]*Target, error) {
	selector, err := labels.Parse(s.Selector)
	if err != nil {
		return nil, err
	}
	if named(s.Args) && (s.All || s.Selector != "") {
		return nil, errors.New("objects are chosen by name, or with -A and -l, and not by both")
	}
	found, err := p.chosen(ctx, s)
	if err != nil {
		return nil, err
	}
	return p.targets(ctx, slices.DeleteFunc(found, func(f cluster.Found) bool {
		return !selector.Matches(labelsOf(f.Object))
	}), named(s.Args))
}

// chosen returns the objects that arguments choose.
func (p *Store) chosen(ctx context.Context, s Selection) (out []cluster.Found, err error) {
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

// Resources returns the names of the kinds that the store has objects of.
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
