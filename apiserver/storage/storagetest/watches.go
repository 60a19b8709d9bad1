package storagetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

func testWatchFromRevision(t *testing.T, s storage.Store) {
	base := now(t, s)
	a1 := put(t, s, "/a", "a1", 0)
	b1 := put(t, s, "/b", "b1", 0)
	a2 := put(t, s, "/a", "a2", a1)
	a3 := remove(t, s, "/a", a2)
	a4 := put(t, s, "/a", "a4", 0)
	first, second := record("/a", "a1", a1), record("/a", "a2", a2)
	want := []storage.Event{
		{Key: "/a", Value: []byte("a1"), Revision: a1},
		{Key: "/b", Value: []byte("b1"), Revision: b1},
		{Key: "/a", Value: []byte("a2"), Previous: &first, Revision: a2},
		{Key: "/a", Previous: &second, Revision: a3},
		{Key: "/a", Value: []byte("a4"), Revision: a4},
	}
	var running []storage.Watcher
	for i, after := range []int64{base, a1, b1, a2, a3, a4} {
		w := watch(t, s, "/", after)
		for _, event := range want[i:] {
			require.Equal(t, event, next(t, w), "after %d", after)
		}
		running = append(running, w)
	}
	// Then the writes from now on.
	fourth := record("/a", "a4", a4)
	a5 := put(t, s, "/a", "a5", a4)
	for _, w := range running {
		require.Equal(t, storage.Event{Key: "/a", Value: []byte("a5"), Previous: &fourth, Revision: a5}, next(t, w))
	}
}

func testWatchFromNow(t *testing.T, s storage.Store) {
	a1 := put(t, s, "/a", "a1", 0)
	w := watch(t, s, "/", 0)
	b1 := put(t, s, "/b", "b1", 0)
	a2 := put(t, s, "/a", "a2", a1)
	require.Equal(t, storage.Event{Key: "/b", Value: []byte("b1"), Revision: b1}, next(t, w))
	first := record("/a", "a1", a1)
	require.Equal(t, storage.Event{Key: "/a", Value: []byte("a2"), Previous: &first, Revision: a2}, next(t, w))
}

func testWatchOfPrefix(t *testing.T, s storage.Store) {
	keys := []string{"/a", "/a/b", "/a/c", "/ab", "/a\U0010ffff", "/b"}
	watches := map[string]storage.Watcher{}
	want := map[string][]string{
		"":            keys,
		"/":           keys,
		"/a":          {"/a", "/a/b", "/a/c", "/ab", "/a\U0010ffff"},
		"/a/":         {"/a/b", "/a/c"},
		"/a/b":        {"/a/b"},
		"/a\xf4":      {"/a\U0010ffff"},
		"/b":          {"/b"},
		"/nobody":     nil,
		"not a slash": nil,
	}
	cancels := map[string]context.CancelFunc{}
	for prefix := range want {
		watches[prefix], cancels[prefix] = stoppable(t, s, prefix, 0)
	}
	for _, key := range keys {
		put(t, s, key, "x", 0)
	}
	for prefix, w := range watches {
		for _, key := range want[prefix] {
			require.Equal(t, key, next(t, w).Key, "%q", prefix)
		}
		cancels[prefix]()
		require.Empty(t, rest(t, w), "%q", prefix)
		require.NoError(t, w.Err())
	}
}

// testWatchUnread checks that a watch that is not read does not block others, and sends all
// events when it is read.
func testWatchUnread(t *testing.T, s storage.Store) {
	const count = 800
	slow, quick := watch(t, s, "/", 0), watch(t, s, "/", 0)
	var want []int64
	for i := range count {
		want = append(want, put(t, s, fmt.Sprintf("/%d", i), "x", 0))
		require.Equal(t, want[i], next(t, quick).Revision)
	}
	for i := range count {
		require.Equal(t, want[i], next(t, slow).Revision)
	}
}

func testWatchContext(t *testing.T, s storage.Store) {
	w, cancel := stoppable(t, s, "/", 0)
	cancel()
	require.Empty(t, rest(t, w))
	require.NoError(t, w.Err())

	// A watch with unsent events that nobody receives ends too.
	w, cancel = stoppable(t, s, "/", 0)
	for i := range 100 {
		put(t, s, fmt.Sprintf("/%d", i), "x", 0)
	}
	next(t, w)
	cancel()
	rest(t, w)
	require.NoError(t, w.Err())

	ctx, expire := context.WithDeadline(t.Context(), time.Now())
	defer expire()
	_, err := s.Watch(ctx, "/", 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func testProgress(t *testing.T, s storage.Store) {
	start := now(t, s)
	w := watch(t, s, "/mine", start)
	mine := put(t, s, "/mine", "x", 0)
	put(t, s, "/another", "x", 0)
	last := now(t, s)
	require.Equal(t, mine, next(t, w).Revision)
	timeout := time.NewTimer(eventTimeout)
	defer timeout.Stop()
	for told := mine; told < last; {
		select {
		case event, ok := <-w.Events():
			require.True(t, ok)
			require.Equal(t, storage.Event{Revision: event.Revision}, event)
			require.Greater(t, event.Revision, told, "progress that is none")
			require.LessOrEqual(t, event.Revision, last)
			told = event.Revision
		case <-timeout.C:
			require.Fail(t, "no progress")
		}
	}
	// Another watch can continue from the revision of a progress event.
	again := put(t, s, "/mine", "y", mine)
	require.Equal(t, again, next(t, watch(t, s, "/mine", last)).Revision)
	require.Equal(t, again, next(t, w).Revision)
}

// testRequestProgress checks that requested progress comes behind all events up to it. A request
// may be lost, so that it is repeated.
func testRequestProgress(t *testing.T, s storage.Store) {
	w := watch(t, s, "/mine", 0)
	var want, got []int64
	for i := range 100 {
		want = append(want, put(t, s, fmt.Sprintf("/mine%d", i), "x", 0))
	}
	last := put(t, s, "/another", "x", 0)
	timeout := time.NewTimer(eventTimeout)
	defer timeout.Stop()
	again := time.NewTicker(eventTimeout / 1000)
	defer again.Stop()
	for reached := int64(0); reached < last; {
		w.RequestProgress()
		select {
		case event, ok := <-w.Events():
			require.True(t, ok)
			require.GreaterOrEqual(t, event.Revision, reached)
			if reached = event.Revision; event.Key != "" {
				got = append(got, event.Revision)
			}
		case <-again.C:
		case <-timeout.C:
			require.Fail(t, "no progress")
		}
	}
	require.Equal(t, want, got)
}

func testCompaction(t *testing.T, s storage.Store) {
	kept := put(t, s, "/kept", "k", 0)
	a1 := put(t, s, "/a", "a1", 0)
	a2 := put(t, s, "/a", "a2", a1)
	b1 := put(t, s, "/b", "b1", 0)
	b2 := remove(t, s, "/b", b1)
	a3 := put(t, s, "/a", "a3", a2)
	a4 := remove(t, s, "/a", a3)

	gone := func(revisions ...int64) {
		t.Helper()
		for _, revision := range revisions {
			_, _, err := s.Get(t.Context(), "/kept", revision)
			require.ErrorIs(t, err, storage.ErrCompacted)
			_, err = s.List(t.Context(), "/", storage.ListOptions{Revision: revision})
			require.ErrorIs(t, err, storage.ErrCompacted)
			_, err = s.Watch(t.Context(), "/", revision)
			require.ErrorIs(t, err, storage.ErrCompacted)
		}
	}
	list := func(revision int64, want ...storage.Record) {
		t.Helper()
		page, err := s.List(t.Context(), "/", storage.ListOptions{Revision: revision})
		require.NoError(t, err)
		require.Equal(t, want, page.Records)
	}
	require.NoError(t, s.Compact(t.Context(), b2))
	gone(kept, a1, a2, b1)
	k, two, three := record("/kept", "k", kept), record("/a", "a2", a2), record("/a", "a3", a3)
	list(b2, two, k)
	list(a3, three, k)
	list(a4, k)
	got, _, err := s.Get(t.Context(), "/a", b2)
	require.NoError(t, err)
	require.Equal(t, &two, got, "written before, overwritten after")
	got, _, err = s.Get(t.Context(), "/b", b2)
	require.NoError(t, err)
	require.Nil(t, got)
	w := watch(t, s, "/", b2)
	require.Equal(t, storage.Event{Key: "/a", Value: []byte("a3"), Previous: &two, Revision: a3}, next(t, w))
	require.Equal(t, storage.Event{Key: "/a", Previous: &three, Revision: a4}, next(t, w))

	for _, again := range []int64{0, a1, b2} {
		require.NoError(t, s.Compact(t.Context(), again), "it is compacted already")
	}
	list(b2, two, k)

	// Compact everything: current records stay, and revisions continue.
	require.NoError(t, s.Compact(t.Context(), a4))
	gone(b2, a3)
	list(a4, k)
	list(0, k)
	require.Equal(t, a4, now(t, s))
	a5 := put(t, s, "/a", "a5", 0)
	require.Greater(t, a5, a4)
	require.Equal(t, storage.Event{Key: "/a", Value: []byte("a5"), Revision: a5}, next(t, w))
	require.Equal(t, storage.Event{Key: "/a", Value: []byte("a5"), Revision: a5}, next(t, watch(t, s, "/", a4)))
}

// testCompactionUnderWatch compacts revisions that a watch has not sent. It must send them or
// return ErrCompacted, and never skip events.
func testCompactionUnderWatch(t *testing.T, s storage.Store) {
	const count = 800
	w, cancel := stoppable(t, s, "/a", 0)
	idle := watch(t, s, "/b", 0)
	var want []int64
	last := int64(0)
	for range count {
		last = put(t, s, "/a", "x", last)
		want = append(want, last)
	}
	require.NoError(t, s.Compact(t.Context(), last))
	for i := 0; ; i++ {
		event, ok := <-w.Events()
		if !ok {
			require.Less(t, i, count)
			require.ErrorIs(t, w.Err(), storage.ErrCompacted)
			break
		}
		if event.Key == "" {
			i--
			continue
		}
		require.Equal(t, want[i], event.Revision)
		if i > 0 {
			require.Equal(t, want[i-1], event.Previous.Revision)
		}
		if i == count-1 {
			cancel()
			require.Empty(t, rest(t, w))
			break
		}
	}
	cancel()
	// A watch without unsent events missed nothing.
	b := put(t, s, "/b", "x", 0)
	require.Equal(t, b, next(t, idle).Revision)
}
