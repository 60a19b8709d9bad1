package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// put stores an object under a prefix.
func put(t *testing.T, records store.Local, prefix, key, kind string) error {
	t.Helper()
	codec := runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)
	s, destroy, err := records.Open(
		&storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: codec}}, prefix,
		func() runtime.Object { return &unstructured.Unstructured{} },
		func() runtime.Object { return &unstructured.UnstructuredList{} })
	require.NoError(t, err)
	defer destroy()
	return s.Create(t.Context(), prefix+key, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a"},
	}}, nil, 0)
}

// TestResources: the resources of stored objects are found.
func TestResources(t *testing.T) {
	records := memory.New(memory.Options{})
	defer func() { require.NoError(t, records.Close()) }()
	require.NoError(t, put(t, records, "/core/configmaps", "/ns/a", "ConfigMap"))
	require.NoError(t, put(t, records, "/core/configmaps", "/ns/b", "ConfigMap"))
	require.NoError(t, put(t, records, "/core/nodes", "/a", "Node"))
	require.NoError(t, put(t, records, "/example.com/things", "/ns/a", "Thing"))
	require.NoError(t, put(t, records, "/ranges/serviceips", "", "RangeAllocation"))
	require.NoError(t, store.Verify(records))
	got, err := store.Resources(records)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, want := range []place.StoredResource{
		{Plural: "configmaps", Namespaced: true, First: "/core/configmaps/ns/a"},
		{Plural: "nodes", First: "/core/nodes/a"},
		{Group: "example.com", Plural: "things", Namespaced: true, First: "/example.com/things/ns/a"},
	} {
		want.Kind.APIVersion, want.Kind.Kind = "v1", []string{"ConfigMap", "Node", "Thing"}[i]
		require.Equal(t, want, got[i])
	}
}

// TestOpenOtherFormat: the error for a file in the earlier format says what to do. Scripts of the command test other
// files.
func TestOpenOtherFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("tenure"))
		if err != nil {
			return err
		}
		return b.Put([]byte("format"), []byte("1"))
	}))
	require.NoError(t, db.Close())
	_, err = store.Open(path, bbolt.Options{})
	require.ErrorContains(t, err, `it has another format: "1", expected "3": print the objects with`)
	require.ErrorContains(t, err, path)
}

// TestReadOnly opens a read-only file.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := store.Open(path, bbolt.Options{})
	require.NoError(t, err)
	require.NoError(t, put(t, s, "/core/configmaps", "/ns/a", "ConfigMap"))
	require.NoError(t, s.Close())
	require.NoError(t, os.Chmod(path, 0o400))
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		require.NoError(t, f.Close())
		t.Skip("this user may write to every file")
	}
	onlyReads(t, path)
}

// onlyReads requires that a store with one resource can be read but not written.
func onlyReads(t *testing.T, path string) {
	s, err := store.Open(path, bbolt.Options{})
	require.NoError(t, err)
	got, err := store.Resources(s)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.ErrorIs(t, put(t, s, "/core/configmaps", "/ns/b", "ConfigMap"), bbolt.ErrReadOnly)
	require.NoError(t, s.Close())
}
