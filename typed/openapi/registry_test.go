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
	lazy := &Registry{kinds: map[schema.GroupVersionKind]entry{a: {load: func() *typed.Type {
		loads++
		return scalars[typed.String]
	}}}}
	u := Union(lazy, Union())
	u.Kinds()
	u.Versions(a.GroupKind())
	require.Zero(t, loads)
	require.Equal(t, text, u.TypeFor(a))
	require.Equal(t, 1, loads)
}

// TestHasStatus shows which documents define whether the status of a kind is a subresource.
func TestHasStatus(t *testing.T) {
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	document := func(paths string) *Registry {
		r, err := CompileV3([]byte(`{"paths":` + paths + `,"components":{"schemas":{"thing":{"type":"object",
			"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Thing"}],
			"properties":{"metadata":{"type":"object"},"status":{"type":"object"}}}}}}`))
		require.NoError(t, err)
		return r
	}
	const get = `{"get":{"x-kubernetes-group-version-kind":{"group":"example.com","version":"v1","kind":"Thing"}}}`
	definition := func(subresources string) *Registry {
		r, err := CompileCRD([]byte(`{"spec": {"group": "example.com", "names": {"kind": "Thing"},
			"versions": [{"name": "v1", "subresources": ` + subresources + `}]}}`))
		require.NoError(t, err)
		return r
	}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, row := range []struct {
		why   string
		types *Registry
		kind  schema.GroupVersionKind
		want  bool
	}{
		{"a built-in kind with a status", Builtin(), deployment, true},
		{"one without", Builtin(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, false},
		{"an unknown kind", Builtin(), thing, false},
		{"no types", nil, thing, false},
		{"a document without paths: the type decides", document("{}"), thing, true},
		{"a server's document has the path",
			document(`{"/apis/example.com/v1/things/{name}/status":` + get + `}`), thing, true},
		{"or does not have it", document(`{"/apis/example.com/v1/things/{name}":` + get + `}`), thing, false},
		{"a path of something else", document(`{"/shelves/{name}/status":[]}`), thing, false},
		{"a definition with the subresource", definition(`{"status": {}}`), thing, true},
		{"and without", definition("{}"), thing, false},
		{"the last registry counts", Union(definition("{}"), document("{}")), thing, true},
	} {
		require.Equal(t, row.want, row.types.HasStatus(row.kind), row.why)
	}
}
