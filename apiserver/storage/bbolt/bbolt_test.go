package bbolt

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
)

var everything = storage.ListOptions{Predicate: storage.Everything, Recursive: true}

func openAt(t *testing.T, path string, options Options) (*Store, storage.Interface) {
	s, err := Open(path, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, configMaps(s)
}

func configMaps(s *Store) storage.Interface {
	config := storagebackend.NewDefaultConfig("", scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion))
	opened, _, err := s.Open(config.ForResource(schema.GroupResource{Resource: "configmaps"}), "/configmaps",
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} })
	if err != nil {
		panic(err)
	}
	return opened
}

func put(ctx context.Context, s storage.Interface, name, value string, ttl uint64) (*corev1.ConfigMap, error) {
	out := &corev1.ConfigMap{}
	err := s.GuaranteedUpdate(ctx, "/configmaps/"+name, out, true, nil,
		func(o runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			o.(*corev1.ConfigMap).Data = map[string]string{"value": value}
			return o, &ttl, nil
		}, nil)
	return out, err
}

func get(t *testing.T, s storage.Interface, name string) *corev1.ConfigMap {
	out := &corev1.ConfigMap{}
	require.NoError(t, s.Get(t.Context(), "/configmaps/"+name, storage.GetOptions{}, out))
	return out
}

// TestReopen checks that objects, resourceVersions and times to live are kept when a file is reopened, and old
// revisions are not.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, maps := openAt(t, path, Options{})
	a, err := put(t.Context(), maps, "a", "1", 0)
	require.NoError(t, err)
	gone, err := put(t.Context(), maps, "gone", "1", 1)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	s, maps = openAt(t, path, Options{})
	require.Equal(t, a, get(t, maps, "a"))
	opts := everything
	opts.ResourceVersion = gone.ResourceVersion
	w, err := maps.Watch(t.Context(), "/configmaps", opts)
	require.NoError(t, err)
	require.Equal(t, watch.Deleted, (<-w.ResultChan()).Type, "it has expired")
	opts.ResourceVersion = a.ResourceVersion
	w, err = maps.Watch(t.Context(), "/configmaps", opts)
	require.NoError(t, err)
	event := <-w.ResultChan()
	require.Equal(t, metav1.StatusReasonExpired, event.Object.(*metav1.Status).Reason)
	_, open := <-w.ResultChan()
	require.False(t, open)

	// Only the file has the value before an update.
	opts.ResourceVersion = ""
	w, err = maps.Watch(t.Context(), "/configmaps", opts)
	require.NoError(t, err)
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	_, err = put(t.Context(), maps, "a", "2", 0)
	require.NoError(t, err)
	require.Equal(t, watch.Modified, (<-w.ResultChan()).Type)
	require.NoError(t, s.Close())
	_, open = <-w.ResultChan()
	require.False(t, open)
	_, err = put(t.Context(), maps, "a", "3", 0)
	require.ErrorIs(t, err, kv.ErrClosed)
}

func TestInUseAndReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, maps := openAt(t, path, Options{})
	a, err := put(t.Context(), maps, "a", "1", 0)
	require.NoError(t, err)
	for _, readOnly := range []bool{false, true} {
		_, err = Open(path, Options{Timeout: time.Millisecond, ReadOnly: readOnly})
		require.EqualError(t, err, "store "+path+": another process has it open; gave up after 1ms")
	}
	require.NoError(t, s.Close())
	require.NoError(t, os.Chmod(path, 0o400))
	for range 2 { // several stores may read it
		_, maps = openAt(t, path, Options{ReadOnly: true})
		require.Equal(t, a, get(t, maps, "a"))
		_, err = put(t.Context(), maps, "a", "2", 0)
		require.ErrorIs(t, err, ErrReadOnly)
		require.Equal(t, a, get(t, maps, "a"))
	}
	_, err = Open(path+"2", Options{ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOpenWhatIsNoStore(t *testing.T) {
	database := func(format string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket(aboutBucket)
				require.NoError(t, err)
				return b.Put(formatKey, []byte(format))
			}))
			require.NoError(t, db.Close())
		}
	}
	content := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	for why, test := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"text":              {content("apiVersion: v1\n"), "not a store, or damaged"},
		"zeros":             {content(string(make([]byte, 1<<16))), "not a store, or damaged"},
		"the format before": {database("2"), `it has another format: "2", expected "3"`},
		"a part is missing": {database("3"), "the file is damaged"},
		"a folder": {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
			"not a file"},
	} {
		t.Run(why, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			test.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(path, Options{})
			require.ErrorContains(t, err, "store "+path+": "+test.want)
			after, _ := os.ReadFile(path)
			require.True(t, bytes.Equal(before, after), "it is left as it was")
		})
	}
}

// TestNoRoom checks that a write to a full disk fails and does not affect acknowledged writes, and that later writes
// succeed when the disk has room again.
func TestNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	f := &file{path: path}
	revision, versions, err := f.open(Options{Timeout: DefaultTimeout})
	require.NoError(t, err)
	s := kv.New(kv.Options{}, f, revision, versions)
	defer func() { require.NoError(t, s.Close()) }()
	first, err := s.Put("/a", []byte("x"), 0, 0)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	f.db.MaxSize = int(info.Size())
	_, err = s.Put("/a", make([]byte, 1<<20), 0, first.Revision)
	require.ErrorContains(t, err, "store "+path)
	got, at, err := s.Get("/a", 0)
	require.NoError(t, err)
	require.Equal(t, []int64{first.Revision, first.Revision}, []int64{got.Revision, at})
	f.db.MaxSize = 0
	second, err := s.Put("/a", make([]byte, 1<<20), 0, first.Revision)
	require.NoError(t, err)
	require.Equal(t, first.Revision+1, second.Revision)
}

// TestDamaged opens files in which random bytes are changed. The store may return wrong objects, but it must return
// objects or an error.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, maps := openAt(t, path, Options{})
	for i := range 40 {
		_, err := put(t.Context(), maps, string(rune('a'+i%7)), string(make([]byte, i*300)), 0)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	failed := 0
	for i := range 100 {
		path := fmt.Sprint(path, i)
		bad := append([]byte{}, good...)
		page := r.IntN(len(bad)/4096) * 4096
		for range 1 + r.IntN(8) {
			bad[page+r.IntN(300)] = byte(r.IntN(256))
		}
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		s, err := Open(path, Options{})
		if err == nil {
			maps := configMaps(s)
			err = maps.GetList(t.Context(), "/configmaps", everything, &corev1.ConfigMapList{})
			if err == nil {
				_, err = put(t.Context(), maps, "new", "x", 0)
			}
			_ = s.Close()
		}
		if err != nil {
			failed++
		}
	}
	require.Positive(t, failed)
}

// TestOpenWhileDiscarded checks that a store that waits for a file that its owner removes opens a new file at the path,
// not the removed file.
func TestOpenWhileDiscarded(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("an open file can't be removed")
	}
	path := filepath.Join(t.TempDir(), "db")
	first, err := Open(path, Options{})
	require.NoError(t, err)
	type opened struct {
		*Store
		err error
	}
	second := make(chan opened)
	go func() {
		s, err := Open(path, Options{})
		second <- opened{s, err}
	}()
	require.NoError(t, first.Discard())
	s := <-second
	require.NoError(t, s.err)
	info, err := os.Stat(path)
	require.NoError(t, err, "the store is in a removed file")
	require.True(t, info.Mode().IsRegular())
	require.NoError(t, s.Close())
	require.FileExists(t, path)
}

// TestMustExist checks that Open does not create a file that must exist.
func TestMustExist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	_, err := Open(path, Options{MustExist: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, path)
}
