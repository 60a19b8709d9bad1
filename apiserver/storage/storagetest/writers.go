package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// testConcurrent has many writers put and delete a few records. Watches must see exactly the
// acknowledged writes, also a watch that starts in the middle, and every write must follow the
// revision that it expected.
func testConcurrent(t *testing.T, s storage.Store) {
	const writers, writes, keys = 32, 60, 6
	base := now(t, s)
	fromStart := watch(t, s, "/", base)

	var mu sync.Mutex
	acknowledged := map[int64]storage.Record{}
	var working sync.WaitGroup
	for writer := range writers {
		working.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(writer)))
			for n := 0; n < writes; {
				key := "/" + strconv.Itoa(r.IntN(keys))
				current, _, err := s.Get(t.Context(), key, 0)
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				write := storage.Record{Key: key}
				switch {
				case current == nil:
					write.Value = fmt.Appendf(nil, "%d/%d", writer, n)
					write.Revision, err = s.Put(t.Context(), key, write.Value, 0)
				case r.IntN(4) == 0:
					write.Revision, err = s.Delete(t.Context(), key, current.Revision)
				default:
					write.Value = fmt.Appendf(nil, "%d/%d", writer, n)
					write.Revision, err = s.Put(t.Context(), key, write.Value, current.Revision)
				}
				if conflict := (*storage.ConflictError)(nil); errors.As(err, &conflict) {
					continue
				}
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				mu.Lock()
				other, taken := acknowledged[write.Revision]
				acknowledged[write.Revision] = write
				mu.Unlock()
				if taken {
					t.Errorf("revision %d was given to %s and to %s", write.Revision, other.Key, key)
				}
				n++
			}
		})
	}
	first := next(t, fromStart)
	middle := watch(t, s, "/", first.Revision)
	working.Wait()
	require.Len(t, acknowledged, writers*writes)

	events := []storage.Event{first}
	for len(events) < len(acknowledged) {
		events = append(events, next(t, fromStart))
		require.Equal(t, events[len(events)-1], next(t, middle))
	}
	last, latest := base, map[string]*storage.Record{}
	for _, event := range events {
		require.Greater(t, event.Revision, last)
		last = event.Revision
		write, ok := acknowledged[event.Revision]
		require.True(t, ok, "revision %d was never acknowledged", event.Revision)
		require.Equal(t, write, storage.Record{Key: event.Key, Value: event.Value, Revision: event.Revision})
		require.Equal(t, latest[event.Key], event.Previous)
		latest[event.Key] = nil
		if write.Value != nil {
			latest[event.Key] = &write
		}
	}
	require.Equal(t, last, now(t, s))
}

// testContended has writers increment one record, each until it succeeds: no update may be
// lost.
func testContended(t *testing.T, s storage.Store) {
	const writers, rounds = 16, 20
	put(t, s, "/counter", "0", 0)
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			current, _, err := s.Get(t.Context(), "/counter", 0)
			for n := 0; n < rounds && err == nil; {
				var count int
				if count, err = strconv.Atoi(string(current.Value)); err != nil {
					break
				}
				_, err = s.Put(t.Context(), "/counter", []byte(strconv.Itoa(count+1)), current.Revision)
				if err == nil {
					n++
					current, _, err = s.Get(t.Context(), "/counter", 0)
				} else if conflict := (*storage.ConflictError)(nil); errors.As(err, &conflict) {
					current, err = conflict.Current, nil
				}
			}
			if err != nil {
				t.Errorf("count: %v", err)
			}
		})
	}
	working.Wait()
	got, _, err := s.Get(t.Context(), "/counter", 0)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(writers*rounds), string(got.Value))
}
