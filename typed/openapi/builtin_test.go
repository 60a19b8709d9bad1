package openapi

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

func embeddedDocuments(t testing.TB) map[string][]byte {
	t.Helper()
	documents := map[string][]byte{}
	require.NoError(t, fs.WalkDir(builtinFiles(), ".", func(path string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(path, ".json"); err == nil && ok && name != "index" {
			documents[name], err = readBuiltin(name)
		}
		return err
	}))
	return documents
}

func TestEveryBuiltinModelIsAsUpstreamHasIt(t *testing.T) {
	for name, document := range embeddedDocuments(t) {
		t.Run(name, func(t *testing.T) {
			models, err := decodeV3(document)
			require.NoError(t, err)
			requireSame(t, models, false)
			requireSame(t, models, true)
		})
	}
}

func TestBuiltinIsAsItsDocuments(t *testing.T) {
	eager := Union()
	for _, document := range embeddedDocuments(t) {
		types, err := CompileV3(document)
		require.NoError(t, err)
		eager = Union(eager, types)
	}
	require.Equal(t, eager.Kinds(), Builtin().Kinds())
	for _, gvk := range eager.Kinds() {
		require.NotNil(t, Builtin().TypeFor(gvk), gvk)
	}
	require.Equal(t, []string{"v2", "v1"},
		Builtin().Versions(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}))
}

func TestBuiltinIsSmall(t *testing.T) {
	require.Less(t, len(embedded), 150_000, "bytes that every program with Builtin carries")
}

func TestPod(t *testing.T) {
	pod := Builtin().TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	spec := pod.Map.Field("spec").Type.Map
	containers := spec.Field("containers").Type.List
	require.Equal(t, []string{"name"}, slices.Collect(containers.Keys()))
	ports := containers.Elem().Map.Field("ports").Type.List
	require.Equal(t, []string{"containerPort", "protocol"}, slices.Collect(ports.Keys()))
	require.Equal(t, "TCP", ports.Elem().Map.Field("protocol").Default)
	require.True(t, spec.Field("nodeSelector").Type.Map.IsAtomic())
	finalizers := pod.Map.Field("metadata").Type.Map.Field("finalizers").Type.List
	require.True(t, finalizers.IsSet())
	require.Nil(t, pod.Map.Elem(), "a Pod accepts declared fields only")
}

func TestRecursiveType(t *testing.T) {
	crd := Builtin().TypeFor(
		schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	versions := crd.Map.Field("spec").Type.Map.Field("versions").Type.List
	props := versions.Elem().Map.Field("schema").Type.Map.Field("openAPIV3Schema").Type
	require.NotNil(t, props.Map)
	require.Same(t, props, props.Map.Field("not").Type)
	require.Same(t, props, props.Map.Field("properties").Type.Map.Elem())
	require.Same(t, props, props.Map.Field("allOf").Type.List.Elem())
	require.NotNil(t, props.Map.Field("description").Type, "a property of that name is no description")
}

func TestTypeForDoesNotAllocate(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	r := Union(Builtin(), Union())
	require.NotNil(t, r.TypeFor(gvk))
	require.Zero(t, testing.AllocsPerRun(100, func() { r.TypeFor(gvk) }))
}

func TestBuiltinIsSafeForConcurrentUse(t *testing.T) {
	r := newBuiltin()
	kinds := r.Kinds()
	const workers = 8
	got := make([][]*typed.Type, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := range kinds {
				// The workers start at different kinds, so that some compile a document at the same time and some do
				// not.
				got[w] = append(got[w], r.TypeFor(kinds[(i+w*len(kinds)/workers)%len(kinds)]))
			}
		})
	}
	wait.Wait()
	for w := range workers {
		for i := range kinds {
			require.Same(t, r.TypeFor(kinds[(i+w*len(kinds)/workers)%len(kinds)]), got[w][i])
		}
	}
}

func TestBuiltinDocument(t *testing.T) {
	for name := range embeddedDocuments(t) {
		gv, err := schema.ParseGroupVersion(strings.TrimPrefix(strings.TrimPrefix(name, "apis/"), "api/"))
		require.NoError(t, err)
		document, ok := BuiltinDocument(gv)
		require.True(t, ok, name)
		r, err := CompileV3(document)
		require.NoError(t, err)
		require.NotEmpty(t, r.Kinds())
		document[0] = 'x' // the caller owns it
		again, ok := BuiltinDocument(gv)
		require.True(t, ok)
		require.Equal(t, byte('{'), again[0])
	}
	for _, gv := range []schema.GroupVersion{{}, {Group: "apps"}, {Version: "v9"}, {Group: "../apps", Version: "v1"},
		{Group: "example.com", Version: "v1"}} {
		_, ok := BuiltinDocument(gv)
		require.False(t, ok, "%v", gv)
	}
}
