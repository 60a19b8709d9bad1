package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

func open(*testing.T) storage.Store {
	return memory.New(memory.Options{Progress: 10 * time.Millisecond})
}

func TestStore(t *testing.T) {
	storagetest.Run(t, open, storagetest.TellsProgress())
}

func TestStartsAtOne(t *testing.T) {
	s := open(t)
	revision, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, revision)
	revision, err = s.Put(t.Context(), "/a", nil, 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, revision)
	got, _, err := s.Get(t.Context(), "/a", 1)
	require.NoError(t, err)
	require.Nil(t, got, "as it was before the first write")
}

func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, func(*testing.B) storage.Store { return memory.New(memory.Options{}) })
}

func TestRetentionByRevisions(t *testing.T) {
	const keep = 10
	s := memory.New(memory.Options{Retention: storage.Retention{Revisions: keep}})
	defer s.Close()
	last := int64(0)
	for range 100 {
		var err error
		last, err = s.Put(t.Context(), "/a", nil, last)
		require.NoError(t, err)
		_, _, err = s.Get(t.Context(), "/a", max(1, last-keep))
		require.NoError(t, err)
		if last > keep+1 {
			_, _, err = s.Get(t.Context(), "/a", last-keep-1)
			require.ErrorIs(t, err, storage.ErrCompacted)
		}
	}
}

func TestRetentionByAge(t *testing.T) {
	var clock time.Time
	s := memory.New(memory.Options{
		Retention: storage.Retention{Age: time.Minute},
		Now:       func() time.Time { return clock },
	})
	defer s.Close()
	old, err := s.Put(t.Context(), "/old", nil, 0)
	require.NoError(t, err)
	clock = clock.Add(time.Minute)
	_, err = s.Put(t.Context(), "/young", nil, 0)
	require.NoError(t, err)
	_, _, err = s.Get(t.Context(), "/old", old-1)
	require.NoError(t, err, "it is just a minute old")
	clock = clock.Add(time.Second)
	_, err = s.Put(t.Context(), "/new", nil, 0)
	require.NoError(t, err)
	_, _, err = s.Get(t.Context(), "/old", old-1)
	require.ErrorIs(t, err, storage.ErrCompacted)
	got, _, err := s.Get(t.Context(), "/young", old)
	require.NoError(t, err)
	require.Nil(t, got)
}

// TestSlowWatch: a watch that has to read what is no longer kept says so, and has sent
// what it could, in order. Writers never wait for it.
func TestSlowWatch(t *testing.T) {
	s := memory.New(memory.Options{Retention: storage.Retention{Revisions: 100}})
	defer s.Close()
	w, err := s.Watch(t.Context(), "/", 0)
	require.NoError(t, err)
	last := int64(0)
	for range 5000 {
		last, err = s.Put(t.Context(), "/a", nil, last)
		require.NoError(t, err)
	}
	next := int64(2)
	for event := range w.Events() {
		require.Equal(t, next, event.Revision)
		next++
	}
	require.Less(t, next, last)
	require.ErrorIs(t, w.Err(), storage.ErrCompacted)
	require.ErrorContains(t, w.Err(), `watch of "/" after revision`)
}
