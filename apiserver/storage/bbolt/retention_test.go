package bbolt_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

// TestRetentionByRevisions: at least as many as asked for are kept, and not many more;
// and of what is forgotten nothing stays in the file.
func TestRetentionByRevisions(t *testing.T) {
	const keep, writes = 64, 300
	path := filepath.Join(t.TempDir(), "store")
	s := openAt(t, path, bbolt.Options{Retention: storage.Retention{Revisions: keep}})
	var last, other int64
	for range writes {
		var err error
		if last, err = s.Put(t.Context(), "/a", []byte("x"), last); err != nil {
			break
		}
		if other, err = s.Put(t.Context(), "/b", []byte("x"), 0); err != nil {
			break
		}
		if other, err = s.Delete(t.Context(), "/b", other); err != nil {
			break
		}
		_, _, err = s.Get(t.Context(), "/a", max(1, other-keep))
		require.NoError(t, err)
		if other > 2*keep {
			_, _, err = s.Get(t.Context(), "/a", other-keep-keep/8)
			require.ErrorIs(t, err, storage.ErrCompacted)
		}
	}
	require.EqualValues(t, 1+3*writes, other)
	require.NoError(t, s.Compact(t.Context(), other))
	require.NoError(t, s.Close())

	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		require.Equal(t, 1, tx.Bucket([]byte("log")).Stats().KeyN)
		require.Equal(t, 1, tx.Bucket([]byte("records")).Stats().KeyN)
		return nil
	}))
}

func TestRetentionByAge(t *testing.T) {
	var clock atomic.Int64
	s := openAt(t, filepath.Join(t.TempDir(), "store"), bbolt.Options{
		Retention: storage.Retention{Age: time.Minute},
		Now:       func() time.Time { return time.Unix(clock.Load(), 0) },
	})
	write := func(key string) int64 {
		revision, err := s.Put(t.Context(), key, nil, 0)
		require.NoError(t, err)
		return revision
	}
	old := write("/old")
	clock.Add(50)
	young := write("/young")
	clock.Add(30)
	_, _, err := s.Get(t.Context(), "/old", old-1)
	require.NoError(t, err, "nothing was written since it expired")
	write("/new")
	_, _, err = s.Get(t.Context(), "/old", old-1)
	require.ErrorIs(t, err, storage.ErrCompacted)
	got, _, err := s.Get(t.Context(), "/young", old)
	require.NoError(t, err)
	require.Nil(t, got)
	got, _, err = s.Get(t.Context(), "/old", young)
	require.NoError(t, err)
	require.NotNil(t, got)
}
