package bbolt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// TestNoRoom: a disk without room makes a write fail as one whose fate is unknown.
// What was acknowledged before stays, and when there is room again, writes go on.
func TestNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	w, err := s.Watch(t.Context(), "/", 0)
	require.NoError(t, err)
	first, err := s.Put(t.Context(), "/a", []byte("x"), 0)
	require.NoError(t, err)

	info, err := os.Stat(path)
	require.NoError(t, err)
	s.db.MaxSize = int(info.Size())
	_, err = s.Put(t.Context(), "/a", make([]byte, 1<<20), first)
	require.ErrorIs(t, err, storage.ErrUnavailable)
	require.ErrorContains(t, err, path)
	got, _, err := s.Get(t.Context(), "/a", 0)
	require.NoError(t, err)
	require.Equal(t, &storage.Record{Key: "/a", Value: []byte("x"), Revision: first}, got)

	s.db.MaxSize = 0
	second, err := s.Put(t.Context(), "/a", make([]byte, 1<<20), first)
	require.NoError(t, err)
	require.Equal(t, first, (<-w.Events()).Revision)
	event := <-w.Events()
	require.Equal(t, second, event.Revision)
	require.Equal(t, got, event.Previous)
}

// TestCatchUp: a commit that failed, and is there nevertheless, reaches the watches.
func TestCatchUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	w, err := s.Watch(t.Context(), "/", 0)
	require.NoError(t, err)
	// Committed behind the back of the writer, as after a sync that failed.
	lost := &request{kind: isPut, key: "/lost", value: []byte("x")}
	require.NoError(t, s.db.Update(func(tx *bolt.Tx) error {
		st, err := load(tx)
		require.NoError(t, err)
		require.NoError(t, st.do(lost, time.Time{}))
		return st.log.SetSequence(uint64(st.revision))
	}))
	require.Equal(t, lost.answer, s.catchUp(lost.answer-1))
	require.Equal(t, "/lost", (<-w.Events()).Key)
	next, err := s.Put(t.Context(), "/next", nil, 0)
	require.NoError(t, err)
	require.Equal(t, lost.answer+1, next)
	require.Equal(t, "/next", (<-w.Events()).Key)
}

// TestDamaged opens and reads files with bytes changed anywhere: what is answered may
// be wrong, but it is an answer or an error.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	for i := range 40 {
		_, err := s.Put(t.Context(), "/"+string(rune('a'+i%7)), make([]byte, i*300), lastOf(t, s, "/"+string(rune('a'+i%7))))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	good, err := os.ReadFile(path)
	require.NoError(t, err)

	r := rand.New(rand.NewPCG(5, 6))
	failed := 0
	for i := range 150 {
		path := fmt.Sprintf("%s%d", path, i)
		bad := append([]byte{}, good...)
		page := r.IntN(len(bad)/4096) * 4096
		for range 1 + r.IntN(8) {
			bad[page+r.IntN(300)] = byte(r.IntN(256))
		}
		if r.IntN(10) == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		if useAll(t, path) != nil {
			failed++
		}
	}
	require.Positive(t, failed)
}

func lastOf(t *testing.T, s *Store, key string) int64 {
	got, _, err := s.Get(t.Context(), key, 0)
	require.NoError(t, err)
	if got == nil {
		return 0
	}
	return got.Revision
}

// useAll opens a store, reads all of it and writes, and returns the first error.
func useAll(t *testing.T, path string) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	page, err := s.List(t.Context(), "/", storage.ListOptions{})
	if err != nil {
		return err
	}
	for revision := range page.Revision {
		if _, err := s.List(t.Context(), "/", storage.ListOptions{Revision: revision}); err != nil {
			return err
		}
		if revision > 50 {
			break
		}
	}
	if _, _, err := s.read("/", 1, page.Revision, 100); err != nil {
		return err
	}
	_, err = s.Put(t.Context(), "/new", []byte("x"), 0)
	return err
}
