package openapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

func TestEmptyRegistries(t *testing.T) {
	for name, r := range map[string]*Registry{"nil": nil, "zero": {}, "union of none": Union(),
		"union of nil": Union(nil, nil)} {
		require.Nil(t, r.TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}), name)
		require.Empty(t, r.Kinds(), name)
		require.Empty(t, r.Versions(schema.GroupKind{Kind: "Pod"}), name)
	}
}

func TestUnion(t *testing.T) {
	a := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "A"}
	b := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "B"}
	first, second := Union(), Union()
	first.add(a, scalars[typed.String])
	first.add(b, scalars[typed.String])
	second.add(b, scalars[typed.Numeric])
	u := Union(first, nil, second)
	require.Equal(t, text, u.TypeFor(a))
	require.Equal(t, number, u.TypeFor(b), "a later registry wins")
	require.Equal(t, text, first.TypeFor(b), "what was united stays as it was")
	require.Equal(t, []schema.GroupVersionKind{a, b}, u.Kinds())
}

func TestUnionIsLazy(t *testing.T) {
	a := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "A"}
	loads := 0
	lazy := &Registry{kinds: map[schema.GroupVersionKind]func() *typed.Type{a: func() *typed.Type {
		loads++
		return scalars[typed.String]
	}}}
	u := Union(lazy, Union())
	u.Kinds()
	u.Versions(a.GroupKind())
	require.Zero(t, loads)
	require.Equal(t, text, u.TypeFor(a))
	require.Equal(t, 1, loads)
}
