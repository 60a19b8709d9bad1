package place

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
)

// Each calls see with the objects of kinds in a namespace, or in all of them if it is empty, and done after
// each kind. It lists page by page, at most concurrency kinds at a time, and keeps no object. Calls do not
// overlap. A kind whose schema can't be read has no types. The error joins those of the kinds that could not be
// listed.
func (p *Cluster) Each(
	ctx context.Context, kinds []cluster.Kind, namespace string, concurrency int, see func(*Target), done func(),
) error {
	var mu sync.Mutex
	errs := make([]error, len(kinds))
	workqueue.ParallelizeUntil(context.Background(), concurrency, len(kinds), func(i int) {
		k := kinds[i]
		in := namespace
		if !k.Namespaced {
			in = ""
		}
		var of *Target
		err := p.Client.ListPages(Quietly(ctx), k, in, math.MaxInt, func(page []map[string]any) bool {
			mu.Lock()
			defer mu.Unlock()
			for _, object := range page {
				if of == nil {
					of = p.targetOrUnknown(ctx, k)
				}
				t := *of
				if err := t.read(object); err != nil {
					errs[i] = fmt.Errorf("%s: %w", k.Resource.GroupResource(), err)
					continue
				}
				see(&t)
			}
			return ctx.Err() == nil
		}, func() {})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", k.Resource.GroupResource(), err)
		}
		done()
	})
	return errors.Join(append(errs, ctx.Err())...)
}

// targetOrUnknown returns a target of a kind, without types if they can't be read.
func (p *Cluster) targetOrUnknown(ctx context.Context, k cluster.Kind) *Target {
	t, err := p.target(ctx, k)
	if err != nil {
		return &Target{Kind: &Kind{GroupVersionKind: k.GroupVersionKind, Unknown: err}, served: k}
	}
	return t
}

// IsServed reports whether a kind is served at a version.
func (p *Cluster) IsServed(gvk schema.GroupVersionKind) bool {
	return slices.Contains(p.Client.Versions(gvk.GroupKind()), gvk.Version)
}

// IsServed reports whether a kind has a schema at a version. It is true for groups without any schema, of which
// nothing is known.
func (p *Files) IsServed(gvk schema.GroupVersionKind) bool {
	known := false
	for _, k := range p.catalog.Types.Kinds() {
		if k == gvk {
			return true
		}
		known = known || k.Group == gvk.Group
	}
	return !known
}
