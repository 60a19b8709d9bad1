package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

const soon = 50 * time.Millisecond

func configMap(namespace, name string, data map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": namespace}, "data": data,
	}
}

func key(name string) store.Key { return store.Key{Kind: "ConfigMap", Namespace: "ns", Name: name} }

func version(obj map[string]any) string {
	return obj["metadata"].(map[string]any)["resourceVersion"].(string)
}

func TestPutGetDelete(t *testing.T) {
	s := store.NewMemory()
	_, err := s.Get(key("a"))
	require.ErrorIs(t, err, store.ErrNotFound)

	given := configMap("ns", "a", map[string]any{"k": "1"})
	one, err := s.Put(key("a"), given, "")
	require.NoError(t, err)
	require.Equal(t, "2", version(one), "the first write of a server's store")
	require.NotContains(t, given["metadata"], "resourceVersion", "what goes in is not changed")

	got, err := s.Get(key("a"))
	require.NoError(t, err)
	require.Equal(t, one, got)

	two, err := s.Put(key("a"), configMap("ns", "a", map[string]any{"k": "<&>"}), "2")
	require.NoError(t, err)
	require.Equal(t, "3", version(two))
	require.Equal(t, map[string]any{"k": "<&>"}, two["data"])

	require.NoError(t, s.Delete(key("a"), "3"))
	_, err = s.Get(key("a"))
	require.ErrorIs(t, err, store.ErrNotFound)
	again, err := s.Put(key("a"), given, "")
	require.NoError(t, err)
	require.Equal(t, "5", version(again), "a delete takes a version too, so that none is given twice")
}

func TestRefusedWrites(t *testing.T) {
	s := store.NewMemory()
	_, err := s.Put(key("a"), configMap("ns", "a", nil), "")
	require.NoError(t, err)
	put := func(key store.Key, over string) func() error {
		return func() error { _, err := s.Put(key, configMap("ns", key.Name, nil), over); return err }
	}
	for _, row := range []struct {
		name string // why the write must fail
		do   func() error
		want error
	}{
		{"create over an object", put(key("a"), ""), store.ErrStale},
		{"replace another version", put(key("a"), "9"), store.ErrStale},
		{"a version that is no number", put(key("a"), "x"), store.ErrStale},
		{"replace what is not there", put(key("b"), "1"), store.ErrStale},
		{"delete another version", func() error { return s.Delete(key("a"), "9") }, store.ErrStale},
		{"delete what is not there", func() error { return s.Delete(key("b"), "1") }, store.ErrNotFound},
	} {
		require.ErrorIs(t, row.do(), row.want, row.name)
	}
	for _, row := range []struct {
		name string // what is wrong
		key  store.Key
		obj  map[string]any
		want string
	}{
		{"no kind", store.Key{Name: "a"}, configMap("ns", "a", nil), "kind and name are required"},
		{"no name", store.Key{Kind: "ConfigMap"}, configMap("ns", "a", nil), "kind and name are required"},
		{"a slash would move the parts", key("a/b"), configMap("ns", "a", nil), "has a / in it"},
		{"a field that the Go type has not", key("c"), map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "spec": int64(1)}, `unknown field "spec"`},
	} {
		_, err := s.Put(row.key, row.obj, "")
		require.ErrorContains(t, err, row.want, row.name)
	}
	got, err := s.Get(key("a"))
	require.NoError(t, err)
	require.Equal(t, "2", version(got), "a refused write leaves no trace")
}

// Records are where a server looks for them.
func TestLayout(t *testing.T) {
	records := memory.New(memory.Options{})
	s := store.New(records)
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "oxen.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"kind": "Ox", "plural": "oxen"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}
	object := func(apiVersion, kind, namespace string) (store.Key, map[string]any) {
		gv, err := schema.ParseGroupVersion(apiVersion)
		require.NoError(t, err)
		metadata := map[string]any{"name": "x"}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		return store.Key{Group: gv.Group, Kind: kind, Namespace: namespace, Name: "x"},
			map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	}
	put := func(apiVersion, kind, namespace string) {
		key, obj := object(apiVersion, kind, namespace)
		stored, err := s.Put(key, obj, "")
		require.NoError(t, err)
		got, err := s.Get(key)
		require.NoError(t, err)
		require.Equal(t, stored, got)
	}
	put("v1", "Endpoints", "ns")
	put("v1", "Node", "")
	put("apps/v1", "Deployment", "ns")
	put("events.k8s.io/v1", "Event", "ns")
	put("autoscaling/v1", "HorizontalPodAutoscaler", "ns")
	put("example.com/v1", "Bolt", "ns") // of a kind that nothing defines
	s.Define(schema.GroupKind{Group: "example.com", Kind: "Sheep"}, "sheep")
	put("example.com/v1", "Sheep", "ns")
	_, err := s.Put(store.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "oxen.example.com"}, crd, "")
	require.NoError(t, err)
	put("example.com/v1", "Ox", "")

	page, err := records.List(t.Context(), "/", storage.ListOptions{})
	require.NoError(t, err)
	var keys []string
	for _, record := range page.Records {
		keys = append(keys, record.Key)
		require.NotContains(t, string(record.Value), "resourceVersion")
	}
	require.Equal(t, []string{
		"/apiextensions.k8s.io/customresourcedefinitions/oxen.example.com",
		"/apps/deployments/ns/x",
		"/autoscaling/horizontalpodautoscalers/ns/x",
		"/core/endpoints/ns/x",
		"/core/events/ns/x",
		"/core/nodes/x",
		"/example.com/bolts/ns/x",
		"/example.com/oxen/x",
		"/example.com/sheep/ns/x",
	}, keys)
	for _, row := range []struct{ group, kind, want string }{
		{"autoscaling", "HorizontalPodAutoscaler", "autoscaling/v2"},
		{"events.k8s.io", "Event", "v1"},
	} {
		got, err := s.Get(store.Key{Group: row.group, Kind: row.kind, Namespace: "ns", Name: "x"})
		require.NoError(t, err)
		require.Equal(t, row.want, got["apiVersion"], "at the version that is stored")
	}
}

func TestList(t *testing.T) {
	s := store.NewMemory()
	for _, at := range [][2]string{{"b", "x"}, {"a", "y"}, {"a", "x"}} {
		_, err := s.Put(store.Key{Kind: "ConfigMap", Namespace: at[0], Name: at[1]}, configMap(at[0], at[1], nil), "")
		require.NoError(t, err)
	}
	for _, obj := range []map[string]any{
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "x", "namespace": "a"}},
		{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "x", "namespace": "b"}},
	} {
		group := ""
		if obj["kind"] == "Deployment" {
			group = "apps"
		}
		_, err := s.Put(store.Key{Group: group, Kind: obj["kind"].(string), Namespace: "a", Name: "x"}, obj, "")
		require.NoError(t, err)
	}
	for _, row := range []struct {
		name  string // what the match is for
		match store.Key
		want  []string
	}{
		{"everything, the core group first", store.Key{}, []string{"ConfigMap a x", "ConfigMap a y", "ConfigMap b x", "Secret b x", "Deployment a x"}},
		{"a kind", store.Key{Kind: "ConfigMap"}, []string{"ConfigMap a x", "ConfigMap a y", "ConfigMap b x"}},
		{"a kind in a namespace", store.Key{Kind: "ConfigMap", Namespace: "b"}, []string{"ConfigMap b x"}},
		{"a namespace", store.Key{Namespace: "a"}, []string{"ConfigMap a x", "ConfigMap a y", "Deployment a x"}},
		{"nothing", store.Key{Kind: "Config"}, nil},
	} {
		got, err := s.List(row.match)
		require.NoError(t, err)
		var names []string
		for _, obj := range got {
			metadata := obj["metadata"].(map[string]any)
			names = append(names, obj["kind"].(string)+" "+metadata["namespace"].(string)+" "+metadata["name"].(string))
		}
		require.Equal(t, row.want, names, row.name)
	}
}

func TestFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	_, err := store.OpenFile(path, store.Options{MustExist: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, path, "who only reads creates nothing")

	s, err := store.OpenFile(path, store.Options{})
	require.NoError(t, err)
	_, err = s.Put(key("a"), configMap("ns", "a", map[string]any{"k": "kept"}), "")
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s, err = store.OpenFile(path, store.Options{MustExist: true})
	require.NoError(t, err)
	defer s.Close()
	got, err := s.Get(key("a"))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"k": "kept"}, got["data"])
	next, err := s.Put(key("b"), configMap("ns", "b", nil), "")
	require.NoError(t, err)
	require.Equal(t, "3", version(next), "the counter goes on")
}

func TestOpenFileErrors(t *testing.T) {
	for _, row := range []struct {
		name  string // what is at the path
		write func(t *testing.T, path string)
		want  string
	}{
		{"in use", func(t *testing.T, path string) {
			s, err := store.OpenFile(path, store.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
		}, `another process has it open; gave up after 50ms: if it is "tenure serve", use kubectl against that, or end it first`},
		{"a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a file"},
		{"some other file", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
		}, "not a store"},
		{"the format before there was a server", func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket([]byte("tenure"))
				if err != nil {
					return err
				}
				return b.Put([]byte("format"), []byte("1"))
			}))
		}, `it has another format: "1", expected "2": with the version of tenure that wrote it`},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			row.write(t, path)
			_, err := store.OpenFile(path, store.Options{Timeout: soon})
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, path)
		})
	}
}

// Verify finds all damage that reading the objects finds.
func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := store.OpenFile(path, store.Options{})
	require.NoError(t, err)
	for i := range 60 {
		name := fmt.Sprintf("a%02d", i)
		_, err := s.Put(key(name), configMap("ns", name, map[string]any{"k": strings.Repeat("v", i*20)}), "")
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	good, err := os.ReadFile(path)
	require.NoError(t, err)

	verify := func(path string) error {
		records, err := bbolt.Open(path, bbolt.Options{Timeout: soon})
		if err != nil {
			return err
		}
		return errors.Join(store.Verify(t.Context(), records), records.Close())
	}
	require.NoError(t, verify(path))
	r := rand.New(rand.NewPCG(1, 2))
	refused, onlyByReading := 0, 0
	for i := range 200 {
		path := fmt.Sprintf("%s%d", path, i)
		bad := bytes.Clone(good)
		page := r.IntN(len(bad)/4096) * 4096
		for range 1 + r.IntN(8) {
			bad[page+r.IntN(4096)] = byte(r.IntN(256))
		}
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		s, openErr := store.OpenFile(path, store.Options{Timeout: soon})
		readErr := openErr
		if openErr == nil {
			_, readErr = s.List(store.Key{})
			require.NoError(t, s.Close())
		}
		verifyErr := verify(path)
		require.Equal(t, readErr == nil, verifyErr == nil, "damage %d: reading says %v, Verify %v", i, readErr, verifyErr)
		if readErr != nil {
			refused++
			if openErr == nil {
				onlyByReading++
			}
		}
	}
	require.Greater(t, refused, 20)
	require.Positive(t, onlyByReading, "opening alone does not tell")
}
