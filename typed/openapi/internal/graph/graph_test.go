package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

var (
	text  = &typed.Type{Scalar: typed.String}
	known = []*typed.Type{text, typed.Deduced()}

	leaf = schema.GroupVersionKind{Version: "v1", Kind: "Leaf"}
	tree = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Tree"}
	twin = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Tree"}
)

// newTree returns a recursive type with one of everything.
func newTree() *typed.Type {
	out := &typed.Type{Scalar: typed.Untyped, Format: typed.Quantity}
	out.List = &typed.List{Kind: typed.KeyedList, Keys: []string{"name", "port"}, Elem: out}
	out.Map = &typed.Map{Atomic: true, Untyped: true, Elem: typed.Deduced(), Fields: map[string]typed.Field{
		"name":  {Type: text, Default: "x", Nullable: true},
		"port":  {Type: &typed.Type{Scalar: typed.Numeric}, Default: int64(80)},
		"share": {Type: &typed.Type{Scalar: typed.Numeric}, Default: 0.5},
		"deep":  {Type: out, Default: map[string]any{"a": []any{int64(1), nil, true}}},
		"empty": {Type: &typed.Type{}},
		"map":   {Type: &typed.Type{Map: &typed.Map{Elem: text}}},
		"set":   {Type: &typed.Type{List: &typed.List{Kind: typed.SetList, Elem: text}}},
	}}
	return out
}

func encode(t *testing.T) []byte {
	t.Helper()
	data, err := Encode(map[schema.GroupVersionKind]*typed.Type{leaf: text, tree: newTree(), twin: newTree()}, known)
	require.NoError(t, err)
	return data
}

func TestRoundTrip(t *testing.T) {
	data := encode(t)
	require.Equal(t, data, encode(t), "the same types give the same bytes")
	g, err := Open(string(data), known)
	require.NoError(t, err)
	require.ElementsMatch(t, []schema.GroupVersionKind{leaf, tree, twin}, g.Kinds())
	got, err := g.Type(tree)
	require.NoError(t, err)
	require.Equal(t, newTree(), got)
	require.Same(t, got, got.List.Elem, "a type that refers to itself")
	require.Same(t, got, got.Map.Fields["deep"].Type)
	require.Same(t, text, got.Map.Fields["name"].Type, "a known type is not made again")
	require.Same(t, got.Map.Fields["port"].Type, got.Map.Fields["share"].Type, "equal types are one")
	other, err := g.Type(twin)
	require.NoError(t, err)
	require.Same(t, got, other, "also those of different kinds")
	one, err := g.Type(leaf)
	require.NoError(t, err)
	require.Same(t, text, one)
	none, err := g.Type(leaf.GroupVersion().WithKind("None"))
	require.NoError(t, err)
	require.Nil(t, none)
}

// TestAlmostEqual: types that differ only in what they refer to, at any depth, are not taken for one.
func TestAlmostEqual(t *testing.T) {
	nested := func(end *typed.Type) *typed.Type {
		for range 5 {
			end = &typed.Type{List: &typed.List{Elem: end}}
		}
		return end
	}
	data, err := Encode(map[schema.GroupVersionKind]*typed.Type{
		tree: nested(text), twin: nested(&typed.Type{Scalar: typed.Boolean}),
	}, known)
	require.NoError(t, err)
	g, err := Open(string(data), known)
	require.NoError(t, err)
	for gvk, want := range map[schema.GroupVersionKind]typed.Scalar{tree: typed.String, twin: typed.Boolean} {
		got, err := g.Type(gvk)
		require.NoError(t, err)
		for got.List != nil {
			got = got.List.Elem
		}
		require.Equal(t, want, got.Scalar)
	}
}

// TestBroken: data that is cut off, or of other known types, is an error.
func TestBroken(t *testing.T) {
	data := string(encode(t))
	for n := range len(data) {
		_, err := Open(data[:n], known)
		require.Error(t, err, "the first %d bytes", n)
	}
	_, err := Open(data+"x", known)
	require.ErrorContains(t, err, "1 bytes after the last kind")
	_, err = Encode(map[schema.GroupVersionKind]*typed.Type{tree: {Map: &typed.Map{Fields: map[string]typed.Field{
		"f": {Type: text, Default: func() {}},
	}}}}, known)
	require.ErrorContains(t, err, "default of f")
}

// FuzzOpen: any data is types or an error, never a panic.
func FuzzOpen(f *testing.F) {
	data, err := Encode(map[schema.GroupVersionKind]*typed.Type{leaf: text, tree: newTree()}, known)
	require.NoError(f, err)
	f.Add(string(data))
	f.Fuzz(func(t *testing.T, data string) {
		g, err := Open(data, known)
		if err != nil {
			return
		}
		for _, gvk := range g.Kinds() {
			if got, err := g.Type(gvk); err == nil {
				require.NotNil(t, got)
			}
		}
	})
}
