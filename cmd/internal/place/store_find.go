package place

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// serveUndefined serves objects whose definition is no longer in the store, so that they can still be
// read and deleted.
func (p *Store) serveUndefined(ctx context.Context) ([]process.Resource, error) {
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
		if err := p.serveStored(r); err != nil {
			return nil, fmt.Errorf("stored object %s: %w", r.First, err)
		}
	}
	return resources, nil
}

func (p *Store) serveStored(r process.Resource) error {
	d, err := definitionOf(r)
	if err != nil {
		return err
	}
	return p.serve(d)
}

// KindsStored returns the kinds of the stored objects, sorted.
func (p *Store) KindsStored(ctx context.Context) (out []cluster.Kind, err error) {
	resources, err := p.serveUndefined(ctx)
	if err != nil {
		return nil, err
	}
	kinds, err := p.Client.Kinds()
	for _, k := range kinds {
		if slices.ContainsFunc(resources, func(r process.Resource) bool {
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

// Find implements [Place]. Without arguments, and for the kind "all", it returns the objects of all kinds.
func (p *Store) Find(ctx context.Context, s Selection) ([]*Target, error) {
	kinds, err := p.KindsStored(ctx) // serves them, even without a definition
	if err != nil {
		return nil, err
	}
	if len(s.Args) == 0 || len(s.Args) == 1 && s.Args[0] == "all" {
		if len(kinds) == 0 {
			return nil, nil
		}
		var names []string
		for _, k := range kinds {
			names = append(names, k.Resource.Resource+"."+k.Resource.Version+"."+k.Resource.Group)
		}
		s.Args = []string{strings.Join(names, ",")}
	}
	return p.Cluster.Find(ctx, s)
}
