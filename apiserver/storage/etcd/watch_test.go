package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

// TestSlowWatch: a watch that nobody takes from lets go of etcd, more than once, and
// sends everything all the same.
func TestSlowWatch(t *testing.T) {
	const count = 5000
	s := openWith(t, optionsFor(storagetest.StartEtcd(t)))
	w, err := s.Watch(t.Context(), "/", 0)
	require.NoError(t, err)
	storagetest.Fill(t, s, "/many/", count/2, []byte("x"))
	last := int64(0)
	take := func(n int) {
		for range n {
			event := <-w.Events()
			require.Greater(t, event.Revision, last)
			last = event.Revision
		}
	}
	take(count / 4)
	storagetest.Fill(t, s, "/more/", count/2, []byte("x"))
	take(count - count/4)
	revision, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, revision, last)
}

// TestWatchBeyondCompaction: one that lags behind what is compacted meanwhile says so.
func TestWatchBeyondCompaction(t *testing.T) {
	s := openWith(t, optionsFor(storagetest.StartEtcd(t)))
	w, err := s.Watch(t.Context(), "/", 0)
	require.NoError(t, err)
	storagetest.Fill(t, s, "/many/", 5000, []byte("x"))
	revision, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Compact(t.Context(), revision))
	last := int64(0)
	for event := range w.Events() {
		if last != 0 {
			require.Equal(t, last+1, event.Revision, "nothing is left out before the end")
		}
		last = event.Revision
	}
	require.Less(t, last, revision)
	require.ErrorIs(t, w.Err(), storage.ErrCompacted)
}

// TestProgressAfterHistory: watches of the past miss nothing while others of the store request progress and are sent
// events.
func TestProgressAfterHistory(t *testing.T) {
	const count = 300
	s := openWith(t, optionsFor(storagetest.StartEtcd(t)))
	after, err := s.Revision(t.Context())
	require.NoError(t, err)
	storagetest.Fill(t, s, "/many/", count, []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	busy, err := s.Watch(ctx, "/busy/", 0)
	require.NoError(t, err)
	running.Go(func() {
		for range busy.Events() {
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			busy.RequestProgress()
			time.Sleep(time.Millisecond)
		}
	})
	for i := range 4 {
		running.Go(func() {
			revision := int64(0)
			for ctx.Err() == nil {
				revision, _ = s.Put(ctx, fmt.Sprintf("/busy/%d", i), make([]byte, 100<<10), revision)
			}
		})
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 30 {
				watching, end := context.WithCancel(ctx)
				defer end()
				w, err := s.Watch(watching, "/many/", after)
				if !assert.NoError(t, err) {
					return
				}
				for i := range int64(count) {
					if event := <-w.Events(); !assert.Equal(t, after+1+i, event.Revision) {
						return
					}
				}
			}
		})
	}
	all.Wait()
}
