package storagetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

func testContexts(t *testing.T, s storage.Store) {
	revision := put(t, s, "/a", "x", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range callAll(ctx, s, revision) {
		require.ErrorIs(t, err, context.Canceled, name)
	}
	require.Equal(t, revision, now(t, s))
}

func testClose(t *testing.T, s storage.Store) {
	revision := put(t, s, "/a", "x", 0)
	var watches []storage.Watcher
	for range 5 {
		watches = append(watches, watch(t, s, "/", 0))
	}
	busy := watch(t, s, "/", 0)
	for i := range 200 {
		put(t, s, fmt.Sprintf("/a/%d", i), "x", 0)
	}
	require.NoError(t, s.Close())
	for _, w := range append(watches, busy) {
		rest(t, w)
		require.ErrorIs(t, w.Err(), storage.ErrClosed)
	}
	for name, err := range callAll(t.Context(), s, revision) {
		require.ErrorIs(t, err, storage.ErrClosed, name)
	}
	require.NoError(t, s.Close(), "once more does nothing")
}

// callAll calls every method and returns their errors.
func callAll(ctx context.Context, s storage.Store, revision int64) map[string]error {
	errs := map[string]error{}
	_, _, errs["get"] = s.Get(ctx, "/a", 0)
	_, _, errs["get at"] = s.Get(ctx, "/a", revision)
	_, errs["list"] = s.List(ctx, "/", storage.ListOptions{})
	_, errs["put"] = s.Put(ctx, "/a", []byte("y"), revision)
	_, errs["delete"] = s.Delete(ctx, "/a", revision)
	_, errs["watch"] = s.Watch(ctx, "/", 0)
	_, errs["watch after"] = s.Watch(ctx, "/", revision)
	errs["compact"] = s.Compact(ctx, revision)
	_, errs["revision"] = s.Revision(ctx)
	return errs
}

func testReopen(t *testing.T, s storage.Store, reopen func(*testing.T, storage.Store) storage.Store) {
	base := now(t, s)
	a1 := put(t, s, "/a", "a1", 0)
	a2 := put(t, s, "/a", "a2", a1)
	b1 := put(t, s, "/b", "b1", 0)
	c1 := put(t, s, "/c", "", 0)
	b2 := remove(t, s, "/b", b1)
	s = reopen(t, s)
	require.Equal(t, b2, now(t, s))

	page, err := s.List(t.Context(), "/", storage.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, storage.Page{Records: []storage.Record{record("/a", "a2", a2), record("/c", "", c1)}, Revision: b2},
		page)
	page, err = s.List(t.Context(), "/", storage.ListOptions{Revision: b1})
	require.NoError(t, err)
	require.Equal(t, storage.Page{Records: []storage.Record{record("/a", "a2", a2), record("/b", "b1", b1)}, Revision: b1},
		page)
	w := watch(t, s, "/", base)
	for _, want := range []int64{a1, a2, b1, c1, b2} {
		require.Equal(t, want, next(t, w).Revision)
	}

	// The last revision is a deletion that was compacted: it must not be used again.
	require.NoError(t, s.Compact(t.Context(), b2))
	s = reopen(t, s)
	rest(t, w)
	require.ErrorIs(t, w.Err(), storage.ErrClosed)
	require.Equal(t, b2, now(t, s))
	_, err = s.Watch(t.Context(), "/", b1)
	require.ErrorIs(t, err, storage.ErrCompacted)
	w = watch(t, s, "/", b2)
	b3 := put(t, s, "/b", "b3", 0)
	require.Greater(t, b3, b2)
	require.Equal(t, storage.Event{Key: "/b", Value: []byte("b3"), Revision: b3}, next(t, w))
	require.NoError(t, s.Close())
}
