package bbolt_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

func openAt(t *testing.T, path string, options bbolt.Options) *bbolt.Store {
	t.Helper()
	s, err := bbolt.Open(path, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	options := bbolt.Options{Progress: 10 * time.Millisecond}
	path := ""
	storagetest.Run(t,
		func(t *testing.T) storage.Store {
			path = filepath.Join(t.TempDir(), "store")
			return openAt(t, path, options)
		},
		storagetest.TellsProgress(),
		storagetest.Reopens(func(t *testing.T, s storage.Store) storage.Store {
			require.NoError(t, s.Close())
			return openAt(t, path, options)
		}),
	)
}

func TestStartsAtOne(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "store"), bbolt.Options{})
	revision, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, revision)
}

func TestFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	openAt(t, path, bbolt.Options{})
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := openAt(t, path, bbolt.Options{})
	_, err := bbolt.Open(path, bbolt.Options{Timeout: time.Millisecond})
	require.EqualError(t, err, "store "+path+": another process has it open; gave up after 1ms")
	require.NoError(t, s.Close())
	openAt(t, path, bbolt.Options{Timeout: time.Millisecond})
}

func TestOpenWhatIsNoStore(t *testing.T) {
	database := func(fill func(tx *bolt.Tx) error) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(fill))
			require.NoError(t, db.Close())
		}
	}
	content := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	for _, test := range []struct {
		why  string
		make func(t *testing.T, path string)
		want string
	}{
		{"text", content("apiVersion: v1\n"), "not a store, or damaged"},
		{"zeros, of some pages", content(string(make([]byte, 1<<16))), "not a store, or damaged"},
		{"a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a file"},
		{"another's database", database(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("key"))
			return err
		}), "a bbolt database, but not a store"},
		{"the format before", database(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("tenure"))
			require.NoError(t, err)
			return b.Put([]byte("format"), []byte("1"))
		}), `it has another format: "1", expected "2"`},
		{"no format", database(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("tenure"))
			return err
		}), `it has another format: "", expected "2"`},
		{"a part is missing", database(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("tenure"))
			require.NoError(t, err)
			return b.Put([]byte("format"), []byte("2"))
		}), "the file is damaged"},
	} {
		t.Run(test.why, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			test.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := bbolt.Open(path, bbolt.Options{})
			require.ErrorContains(t, err, "store "+path+": "+test.want)
			after, _ := os.ReadFile(path)
			require.Equal(t, before, after, "it is left as it was")
		})
	}
	_, err := bbolt.Open(filepath.Join(t.TempDir(), "missing", "store"), bbolt.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestOpenEmptyFile: a process that was killed just after it created the file leaves
// an empty one.
func TestOpenEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := openAt(t, path, bbolt.Options{}).Put(t.Context(), "/a", nil, 0)
	require.NoError(t, err)
}

func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Store {
		s, err := bbolt.Open(filepath.Join(b.TempDir(), "store"), bbolt.Options{})
		require.NoError(b, err)
		return s
	})
}
