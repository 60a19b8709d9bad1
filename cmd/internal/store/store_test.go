package store_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// each runs a test on every store: they must not differ.
func each(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, &store.Memory{}) })
	t.Run("file", func(t *testing.T) { test(t, open(t, filepath.Join(t.TempDir(), "db"))) })
}

func open(t *testing.T, path string) *store.File {
	t.Helper()
	s, err := store.OpenFile(path, store.Options{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func object(name string, value any) map[string]any {
	return map[string]any{"kind": "Thing", "metadata": map[string]any{"name": name}, "value": value}
}

func version(obj map[string]any) string {
	return obj["metadata"].(map[string]any)["resourceVersion"].(string)
}

var a = store.Key{Group: "g", Kind: "Thing", Namespace: "ns", Name: "a"}

func TestPutGetDelete(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		_, err := s.Get(a)
		require.ErrorIs(t, err, store.ErrNotFound)

		given := object("a", int64(1))
		one, err := s.Put(a, given, "")
		require.NoError(t, err)
		require.Equal(t, "1", version(one))
		require.NotContains(t, given["metadata"], "resourceVersion", "what goes in is not changed")

		got, err := s.Get(a)
		require.NoError(t, err)
		require.Equal(t, one, got)
		require.Equal(t, int64(1), got["value"], "whole numbers stay whole")

		two, err := s.Put(a, object("a", "<&>"), "1")
		require.NoError(t, err)
		require.Equal(t, "2", version(two))
		require.Equal(t, "<&>", two["value"])

		require.NoError(t, s.Delete(a, "2"))
		_, err = s.Get(a)
		require.ErrorIs(t, err, store.ErrNotFound)

		again, err := s.Put(a, object("a", nil), "")
		require.NoError(t, err)
		require.Equal(t, "4", version(again), "a delete takes a version too, so that none is given twice")
	})
}

func TestCompareAndSwap(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		_, err := s.Put(a, object("a", 1), "")
		require.NoError(t, err)
		for _, row := range []struct {
			name string // why the write must fail
			do   func() error
			want error
		}{
			{"create over an object", func() error { _, err := s.Put(a, object("a", 2), ""); return err }, store.ErrStale},
			{"replace another version", func() error { _, err := s.Put(a, object("a", 2), "9"); return err }, store.ErrStale},
			{"delete another version", func() error { return s.Delete(a, "9") }, store.ErrStale},
			{"replace what is not there", func() error { _, err := s.Put(key("b"), object("b", 2), "1"); return err }, store.ErrStale},
			{"delete what is not there", func() error { return s.Delete(key("b"), "1") }, store.ErrNotFound},
		} {
			require.ErrorIs(t, row.do(), row.want, row.name)
		}
		got, err := s.Get(a)
		require.NoError(t, err)
		require.Equal(t, "1", version(got), "a refused write leaves no trace")
		next, err := s.Put(key("b"), object("b", 2), "")
		require.NoError(t, err)
		require.Equal(t, "2", version(next), "a refused write takes no version")
	})
}

func key(name string) store.Key {
	return store.Key{Group: "g", Kind: "Thing", Namespace: "ns", Name: name}
}

func TestBadWrites(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		for _, row := range []struct {
			name string // what is wrong
			key  store.Key
			obj  map[string]any
			want string
		}{
			{"no kind", store.Key{Name: "a"}, object("a", 1), "kind and name are required"},
			{"no name", store.Key{Kind: "Thing"}, object("a", 1), "kind and name are required"},
			{"a NUL would move the parts", store.Key{Kind: "Thing", Name: "a\x00b"}, object("a", 1), "NUL"},
			{"no JSON", a, object("a", func() {}), "unsupported type"},
		} {
			_, err := s.Put(row.key, row.obj, "")
			require.ErrorContains(t, err, row.want, row.name)
		}
		all, err := s.List(store.Key{})
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

func TestList(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		keys := []store.Key{
			{Kind: "Pod", Namespace: "b", Name: "x"},
			{Kind: "Pod", Namespace: "a", Name: "y"},
			{Kind: "Pod", Namespace: "a", Name: "x"},
			{Group: "g", Kind: "Pod", Namespace: "a", Name: "x"},
			{Group: "g", Kind: "PodSet", Namespace: "a", Name: "x"},
		}
		for _, k := range keys {
			_, err := s.Put(k, object(fmt.Sprint(k), nil), "")
			require.NoError(t, err)
		}
		for _, row := range []struct {
			name  string // what the match is for
			match store.Key
			want  []store.Key
		}{
			{"everything, in order", store.Key{}, []store.Key{keys[2], keys[1], keys[0], keys[3], keys[4]}},
			{"a kind, whatever its group", store.Key{Kind: "Pod"}, []store.Key{keys[2], keys[1], keys[0], keys[3]}},
			{"a kind is no prefix", store.Key{Group: "g", Kind: "Pod"}, []store.Key{keys[3]}},
			{"a namespace", store.Key{Kind: "Pod", Namespace: "b"}, []store.Key{keys[0]}},
			{"nothing", store.Key{Kind: "Po"}, nil},
		} {
			got, err := s.List(row.match)
			require.NoError(t, err)
			var names, want []string
			for _, obj := range got {
				names = append(names, obj["metadata"].(map[string]any)["name"].(string))
			}
			for _, k := range row.want {
				want = append(want, fmt.Sprint(k))
			}
			require.Equal(t, want, names, row.name)
		}
	})
}

// Goroutines that read, add one and write lose nothing.
func TestConcurrent(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		_, err := s.Put(a, object("a", int64(0)), "")
		require.NoError(t, err)
		const workers, rounds = 4, 5
		var wg sync.WaitGroup
		errs := make(chan error, workers)
		for range workers {
			wg.Go(func() {
				for done := 0; done < rounds; {
					got, err := s.Get(a)
					if err != nil {
						errs <- err
						return
					}
					if _, err = s.Put(a, object("a", got["value"].(int64)+1), version(got)); err == nil {
						done++
					}
				}
			})
		}
		wg.Wait()
		require.Empty(t, errs)
		got, err := s.Get(a)
		require.NoError(t, err)
		require.Equal(t, int64(workers*rounds), got["value"])
		require.Equal(t, fmt.Sprint(workers*rounds+1), version(got))
	})
}

func TestFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	_, err := s.Put(a, object("a", "kept"), "")
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = open(t, path)
	got, err := s.Get(a)
	require.NoError(t, err)
	require.Equal(t, "kept", got["value"])
	next, err := s.Put(key("b"), object("b", nil), "")
	require.NoError(t, err)
	require.Equal(t, "2", version(next), "the counter goes on")
}

func TestFileReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	readOnly := store.Options{ReadOnly: true, Timeout: 50 * time.Millisecond}
	_, err := store.OpenFile(path, readOnly)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, path, "who only reads creates nothing")

	s := open(t, path)
	_, err = s.Put(a, object("a", nil), "")
	require.NoError(t, err)
	require.NoError(t, s.Close())

	for range 2 { // beside each other
		s, err := store.OpenFile(path, readOnly)
		require.NoError(t, err)
		defer s.Close()
		_, err = s.Get(a)
		require.NoError(t, err)
		_, err = s.Put(key("b"), object("b", nil), "")
		require.Error(t, err)
	}
}

func TestOpenFileErrors(t *testing.T) {
	for _, row := range []struct {
		name  string // what is at the path
		write func(t *testing.T, path string)
		want  string
	}{
		{"in use", func(t *testing.T, path string) { open(t, path) }, "another process has it open"},
		{"a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a file"},
		{"some other file", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
		}, "not a store"},
		{"somebody else's database", func(t *testing.T, path string) { edit(t, path, "theirs", "k", "v") }, "not a store"},
		{"a later format", func(t *testing.T, path string) { edit(t, path, "tenure", "format", "2") }, `format "2"`},
		{"no objects", func(t *testing.T, path string) { edit(t, path, "tenure", "format", "1") }, "damaged"},
		{"the end is missing", func(t *testing.T, path string) {
			s := open(t, path)
			for i := range 50 {
				_, err := s.Put(key(fmt.Sprint(i)), object("a", string(make([]byte, 4<<10))), "")
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
			require.NoError(t, os.Truncate(path, 12<<10))
		}, "damaged"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			row.write(t, path)
			s, err := store.OpenFile(path, store.Options{Timeout: 50 * time.Millisecond})
			if err == nil {
				_, err = s.List(store.Key{})
				_ = s.Close()
			}
			require.ErrorContains(t, err, row.want)
		})
	}
}

// edit makes a bbolt database with one bucket in it.
func edit(t *testing.T, path, bucket, k, v string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(bucket))
		if err != nil {
			return err
		}
		return b.Put([]byte(k), []byte(v))
	}))
}
