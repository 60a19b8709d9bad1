package watchcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

// counting counts the streams that are open.
type counting struct {
	storage.Store
	streams atomic.Int64
}

func (s *counting) Watch(ctx context.Context, prefix string, after int64) (storage.Watcher, error) {
	w, err := s.Store.Watch(ctx, prefix, after)
	if err == nil {
		s.streams.Add(1)
		context.AfterFunc(ctx, func() { s.streams.Add(-1) })
	}
	return w, err
}

func newCaches(t *testing.T, idle time.Duration) (*Caches, *counting) {
	store := &counting{Store: memory.New(memory.Options{Progress: time.Hour})}
	caches := New(store, idle)
	t.Cleanup(func() {
		caches.Close()
		require.NoError(t, store.Close())
	})
	return caches, store
}

const timeout = 20 * time.Second

// All watches of a resource share one stream of the store, one decoded object and one frame for
// each form.
func TestWorkIsShared(t *testing.T) {
	caches, store := newCaches(t, 0)
	var decodes, encodes atomic.Int64
	strategy := &plain{}
	everything := selections(t, strategy)
	var running, started sync.WaitGroup
	frames := make(chan *byte, 2000)
	for i := range 500 {
		// Selectors that match: all of them decode the object.
		s := everything[[]int{0, 4, 8, 28}[i%4]]
		s.Read = nil
		s.Decode = func(strategy resources.Strategy, r storage.Record) (resources.Object, error) {
			decodes.Add(1)
			return decode(strategy, r)
		}
		started.Add(1)
		running.Go(func() {
			cache, release, err := caches.Open(t.Context(), root, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			_, sub := cache.SubscribeFromNow(s)
			defer sub.Close()
			started.Done()
			for sent := 0; sent < 2; {
				b, err := sub.Next()
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range b.Entries {
					data, err := e.Event.Frame(e.Type, Form{MediaType: fmt.Sprint(i % 3)}, func() ([]byte, error) {
						encodes.Add(1)
						return []byte{1}, nil
					})
					if err != nil {
						t.Error(err)
					}
					frames <- &data[0]
					sent++
				}
				if b.Waits && sent < 2 {
					<-sub.Wake
				}
			}
		})
	}
	started.Wait()
	require.EqualValues(t, 1, store.streams.Load())
	revision, err := store.Put(t.Context(), root+"a/x", value("x", "red", "n1"), 0)
	require.NoError(t, err)
	_, err = store.Put(t.Context(), root+"a/x", value("x", "red", "n2"), revision)
	require.NoError(t, err)
	running.Wait()
	close(frames)
	shared := map[*byte]int{}
	for frame := range frames {
		shared[frame]++
	}
	require.Len(t, shared, 6, "two events, three forms")
	require.EqualValues(t, 6, encodes.Load())
	require.EqualValues(t, 2, decodes.Load())
}

// A cache without watches ends, with its stream; the next watch starts another one.
func TestIdleCachesEnd(t *testing.T) {
	caches, store := newCaches(t, time.Millisecond)
	_, release, err := caches.Open(t.Context(), root, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, store.streams.Load())
	time.Sleep(5 * time.Millisecond)
	require.EqualValues(t, 1, store.streams.Load(), "it is in use")
	release()
	require.Eventually(t, func() bool { return store.streams.Load() == 0 }, timeout, time.Millisecond)
	_, _, ok := caches.Running(root)
	require.False(t, ok)
	cache, release, err := caches.Open(t.Context(), root, 0)
	require.NoError(t, err)
	defer release()
	require.EqualValues(t, 1, store.streams.Load())
	caches.Close()
	<-cache.ended
	_, _, err = caches.Open(t.Context(), root, 0)
	require.ErrorIs(t, err, storage.ErrClosed)
}

// A stream that fails ends all watches with its error, and the next watch starts another one.
func TestStreamFails(t *testing.T) {
	store := &failing{Store: memory.New(memory.Options{})}
	caches := New(store, 0)
	defer caches.Close()
	cache, release, err := caches.Open(t.Context(), root, 0)
	require.NoError(t, err)
	_, sub := cache.SubscribeFromNow(selections(t, &plain{})[0])
	b, err := sub.Next()
	require.NoError(t, err)
	require.True(t, b.Waits)
	store.fail()
	<-sub.Wake
	_, err = sub.Next()
	require.ErrorIs(t, err, storage.ErrCompacted)
	sub.Close()
	release()
	require.Eventually(t, func() bool {
		cache, release, err := caches.Open(t.Context(), root, 0)
		if err == nil {
			_, err = cache.WaitFor(t.Context(), 1)
			release()
		}
		return err == nil
	}, timeout, time.Millisecond)
	_, err = cache.WaitFor(t.Context(), 1<<60)
	require.ErrorIs(t, err, storage.ErrCompacted)
}

// failing is a store whose watches can be made to fail.
type failing struct {
	storage.Store
	end context.CancelFunc
}

func (s *failing) Watch(ctx context.Context, prefix string, after int64) (storage.Watcher, error) {
	ctx, s.end = context.WithCancel(ctx)
	w, err := s.Store.Watch(ctx, prefix, after)
	return failed{w}, err
}

func (s *failing) fail() { s.end() }

type failed struct{ storage.Watcher }

func (failed) Err() error { return storage.ErrCompacted }

// A waiter for a revision of another resource does not wait for the next event.
func TestWaitForProgress(t *testing.T) {
	caches, store := newCaches(t, 0)
	cache, release, err := caches.Open(t.Context(), root, 0)
	require.NoError(t, err)
	defer release()
	for i := range 10 {
		revision, err := store.Put(t.Context(), fmt.Sprintf("/other/%d", i), []byte("x"), 0)
		require.NoError(t, err)
		ok, err := cache.WaitFor(t.Context(), revision)
		require.NoError(t, err)
		require.True(t, ok)
		require.GreaterOrEqual(t, cache.Reached(), revision)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cache.WaitFor(ctx, 1<<60)
	require.ErrorIs(t, err, context.Canceled)
}

// An object that can't be decoded ends the watches whose selectors need it, and no others.
func TestUndecodable(t *testing.T) {
	caches, store := newCaches(t, 0)
	cache, release, err := caches.Open(t.Context(), root, 0)
	require.NoError(t, err)
	defer release()
	all := selections(t, &plain{})
	_, everything := cache.SubscribeFromNow(all[0])
	defer everything.Close()
	_, indexed := cache.SubscribeFromNow(all[1])
	defer indexed.Close()
	revision, err := store.Put(t.Context(), root+"a/x", []byte("{"), 0)
	require.NoError(t, err)
	_, err = cache.WaitFor(t.Context(), revision)
	require.NoError(t, err)
	b, err := everything.Next()
	require.NoError(t, err)
	require.NoError(t, b.Entries[0].Err)
	b, err = indexed.Next()
	require.NoError(t, err)
	require.Error(t, b.Entries[0].Err)
}

// A cache that a watch of the past starts has what was written since in its window, if there is room.
func TestOpenInThePast(t *testing.T) {
	for _, c := range []struct {
		name    string
		window  int
		compact int64 // the revision to compact at
		from    int64 // of the window
	}{
		{"from the revision on", 100, 0, 5},
		{"too long ago for the window", 10, 0, 21},
		{"compacted", 100, 7, 21},
	} {
		t.Run(c.name, func(t *testing.T) {
			caches, store := newCaches(t, 0)
			caches.limits.window = c.window
			storagetest.Fill(t, store, root+"a/", 20, []byte("{}"))
			require.NoError(t, store.Compact(t.Context(), c.compact))
			cache, release, err := caches.Open(t.Context(), root, 5)
			require.NoError(t, err)
			defer release()
			require.Equal(t, c.from, cache.From())
			subscription, ok := cache.Subscribe(selections(t, &plain{})[0], 5)
			require.Equal(t, c.from == 5, ok)
			ok, err = cache.WaitFor(t.Context(), 21)
			require.NoError(t, err)
			require.True(t, ok)
			held := 0
			cache.Snapshot().Items(root, "", func(*Item) bool {
				held++
				return true
			})
			require.Equal(t, 20, held)
			if subscription == nil {
				return
			}
			defer subscription.Close()
			for revision := int64(6); revision <= 21; {
				b, err := subscription.Next()
				require.NoError(t, err)
				for _, e := range b.Entries {
					require.Equal(t, revision, e.Event.Revision)
					revision++
				}
			}
		})
	}
}
