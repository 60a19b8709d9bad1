package openapi

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

func TestCurrent(t *testing.T) {
	k := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	other := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Other"}
	var c Current
	require.Nil(t, c.TypeFor(k), "the zero Current knows no kind")
	require.Nil(t, c.Registry())
	c.Replace(compiled(map[schema.GroupVersionKind]*typed.Type{k: scalar(typed.String)}))
	before := c.TypeFor(k)
	c.Update(func(old *Registry) *Registry {
		return Union(old,
			compiled(map[schema.GroupVersionKind]*typed.Type{k: scalar(typed.Numeric), other: scalar(typed.Boolean)}))
	})
	require.Equal(t, number, c.TypeFor(k))
	require.Equal(t, text, before, "who got a type keeps it")
	c.Update(func(old *Registry) *Registry { return old.Without(k.GroupKind()) })
	require.Nil(t, c.TypeFor(k))
	require.Equal(t, boolean, c.TypeFor(other))
	require.Zero(t, testing.AllocsPerRun(100, func() { c.TypeFor(other) }))
}

func TestWithout(t *testing.T) {
	v1 := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	v2 := schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "K"}
	elsewhere := schema.GroupVersionKind{Group: "h", Version: "v1", Kind: "K"}
	r := compiled(
		map[schema.GroupVersionKind]*typed.Type{v1: scalar(typed.String), v2: scalar(typed.String),
			elsewhere: scalar(typed.String)})
	require.Equal(t, []schema.GroupVersionKind{elsewhere}, r.Without(v1.GroupKind()).Kinds())
	require.Len(t, r.Kinds(), 3, "the registry stays as it was")
	require.Empty(t, (*Registry)(nil).Without(v1.GroupKind()).Kinds())
}

// TestCurrentIsSafeForConcurrentUse: no update is lost, and readers see whole
// registries. It is for the race detector too.
func TestCurrentIsSafeForConcurrentUse(t *testing.T) {
	const writers, kinds = 4, 50
	c := NewCurrent(Builtin())
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	kind := func(writer, i int) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "g", Version: fmt.Sprintf("v%d", writer+1), Kind: fmt.Sprintf("K%d", i)}
	}
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range kinds {
				added := compiled(map[schema.GroupVersionKind]*typed.Type{kind(w, i): scalar(typed.String)})
				c.Update(func(old *Registry) *Registry { return Union(old, added) })
			}
		})
		wait.Go(func() {
			for i := range kinds {
				r := c.Registry()
				if c.TypeFor(pod) == nil || r.TypeFor(kind(w, i)) != nil && i > 0 && r.TypeFor(kind(w, i-1)) == nil {
					t.Error("a registry that is not whole")
				}
			}
		})
	}
	wait.Wait()
	for w := range writers {
		for i := range kinds {
			require.NotNil(t, c.TypeFor(kind(w, i)))
		}
	}
}
