// Package storagetest has the tests and benchmarks that every store passes, and helpers for
// tests of stores.
//
//	func TestStore(t *testing.T) {
//		storagetest.Run(t, func(t *testing.T) storage.Store { return memory.New(memory.Options{}) })
//	}
package storagetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// eventTimeout is how long a test waits for an event.
const eventTimeout = time.Minute

// An Option describes a store to Run.
type Option func(*suite)

// Reopens declares that records survive closing and reopening the store, which reopen does.
func Reopens(reopen func(t *testing.T, s storage.Store) storage.Store) Option {
	return func(s *suite) { s.reopen = reopen }
}

// TellsProgress declares that idle watches send progress events soon, as the stores of open
// were configured to.
func TellsProgress() Option {
	return func(s *suite) { s.progress = true }
}

type suite struct {
	reopen   func(t *testing.T, s storage.Store) storage.Store
	progress bool
}

// Run runs the suite. Each test calls open for a new, empty store that keeps the history of at
// least 50,000 writes, and closes it. Its revision may have any value, and revisions may have
// gaps.
func Run(t *testing.T, open func(t *testing.T) storage.Store, options ...Option) {
	var s suite
	for _, option := range options {
		option(&s)
	}
	tests := []struct {
		name string
		test func(*testing.T, storage.Store)
	}{
		{"compare and swap", testCompareAndSwap},
		{"keys", testKeys},
		{"values", testValues},
		{"bytes are not shared", testIsolation},
		{"reads at revisions", testReadsAtRevisions},
		{"list narrows", testListNarrows},
		{"list pages", testListPages},
		{"list of many", testListOfMany},
		{"future", testFuture},
		{"compaction", testCompaction},
		{"compaction under a watch", testCompactionUnderWatch},
		{"watch from a revision", testWatchFromRevision},
		{"watch from now", testWatchFromNow},
		{"watch of a prefix", testWatchOfPrefix},
		{"watch that nobody reads", testWatchUnread},
		{"watch ends with its context", testWatchContext},
		{"progress on request", testRequestProgress},
		{"contexts", testContexts},
		{"close", testClose},
		{"random operations", testRandom},
		{"concurrent writers", testConcurrent},
		{"one record, many writers", testContended},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := open(t)
			defer func() { require.NoError(t, store.Close()) }()
			test.test(t, store)
		})
	}
	if s.progress {
		t.Run("progress", func(t *testing.T) {
			store := open(t)
			defer func() { require.NoError(t, store.Close()) }()
			testProgress(t, store)
		})
	}
	if s.reopen != nil {
		t.Run("reopen", func(t *testing.T) { testReopen(t, open(t), s.reopen) })
	}
}

// put writes a record and returns the revision.
func put(t *testing.T, s storage.Store, key, value string, expected int64) int64 {
	t.Helper()
	revision, err := s.Put(t.Context(), key, []byte(value), expected)
	require.NoError(t, err)
	require.Greater(t, revision, expected)
	return revision
}

// Fill creates count records at prefix000000 and so on, many at a time.
func Fill(t testing.TB, s storage.Store, prefix string, count int, value []byte) {
	t.Helper()
	var next atomic.Int64
	var working sync.WaitGroup
	for range 64 {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				if _, err := s.Put(t.Context(), fmt.Sprintf("%s%06d", prefix, i), value, 0); err != nil {
					t.Errorf("fill: %v", err)
					return
				}
			}
		})
	}
	working.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// remove deletes a record and returns the revision.
func remove(t *testing.T, s storage.Store, key string, expected int64) int64 {
	t.Helper()
	revision, err := s.Delete(t.Context(), key, expected)
	require.NoError(t, err)
	require.Greater(t, revision, expected)
	return revision
}

// now returns the store's revision.
func now(t *testing.T, s storage.Store) int64 {
	t.Helper()
	revision, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.Positive(t, revision)
	return revision
}

// record returns the record that put writes.
func record(key, value string, revision int64) storage.Record {
	return storage.Record{Key: key, Value: []byte(value), Revision: revision}
}

// watch starts a watch that ends with the test.
func watch(t *testing.T, s storage.Store, prefix string, after int64) storage.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), prefix, after)
	require.NoError(t, err)
	return w
}

// next returns the next write of a watch.
func next(t *testing.T, w storage.Watcher) storage.Event {
	t.Helper()
	timeout := time.NewTimer(eventTimeout)
	defer timeout.Stop()
	for {
		select {
		case event, ok := <-w.Events():
			if !ok {
				require.NoError(t, w.Err())
				require.Fail(t, "the watch has ended")
			}
			if event.Key != "" {
				return event
			}
		case <-timeout.C:
			require.Fail(t, "no event came")
		}
	}
}

// rest waits for the end of a watch and returns its remaining writes.
func rest(t *testing.T, w storage.Watcher) (events []storage.Event) {
	t.Helper()
	timeout := time.NewTimer(eventTimeout)
	defer timeout.Stop()
	for {
		select {
		case event, ok := <-w.Events():
			if !ok {
				return events
			}
			if event.Key != "" {
				events = append(events, event)
			}
		case <-timeout.C:
			require.Fail(t, "the watch did not end")
		}
	}
}

// stoppable starts a watch and returns a function that ends it.
func stoppable(t *testing.T, s storage.Store, prefix string, after int64) (storage.Watcher, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Watch(ctx, prefix, after)
	require.NoError(t, err)
	return w, cancel
}
