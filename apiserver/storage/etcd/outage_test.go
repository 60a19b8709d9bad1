package etcd_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

// TestOutage stops etcd and starts it again: meanwhile every call says within its time
// that the store is unavailable; then all that was acknowledged is there, and a watch
// that ran all the time has missed nothing.
func TestOutage(t *testing.T) {
	server := storagetest.StartEtcd(t)
	s := openWith(t, optionsFor(server))
	options := optionsFor(server)
	options.Timeout = 300 * time.Millisecond
	brief := openWith(t, options) // for calls that take their whole time
	ctx := t.Context()
	w, err := s.Watch(ctx, "/", 0)
	require.NoError(t, err)
	var revisions []int64
	write := func(key string) {
		revision, err := s.Put(ctx, key, []byte("x"), 0)
		require.NoError(t, err)
		revisions = append(revisions, revision)
		event := <-w.Events()
		require.Equal(t, storage.Event{Key: key, Value: []byte("x"), Revision: revision}, event)
	}
	for round := range 3 {
		write(fmt.Sprintf("/before/%d", round))
		server.Stop()

		_, _, err := brief.Get(ctx, "/a", 0)
		require.ErrorIs(t, err, storage.ErrUnavailable)
		_, err = brief.List(ctx, "/", storage.ListOptions{})
		require.ErrorIs(t, err, storage.ErrUnavailable)
		_, err = brief.Put(ctx, "/lost", nil, 0)
		require.ErrorIs(t, err, storage.ErrUnavailable)
		_, err = brief.Delete(ctx, "/before/0", revisions[0])
		require.ErrorIs(t, err, storage.ErrUnavailable)
		_, err = brief.Watch(ctx, "/", 0)
		require.ErrorIs(t, err, storage.ErrUnavailable)
		require.ErrorIs(t, brief.Compact(ctx, 1), storage.ErrUnavailable)
		_, err = brief.Revision(ctx)
		require.ErrorIs(t, err, storage.ErrUnavailable)
		_, err = etcd.Open(ctx, options)
		require.ErrorIs(t, err, storage.ErrUnavailable)
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		_, _, err = brief.Get(short, "/a", 0)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's time, not the store's")

		server.Start()
		for {
			_, err := s.Revision(ctx)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, storage.ErrUnavailable)
		}
	}
	write("/after")
	page, err := s.List(ctx, "/", storage.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Records, len(revisions))
	for i, key := range []string{"/after", "/before/0", "/before/1", "/before/2"} {
		require.Equal(t, key, page.Records[i].Key)
	}
}

// TestCloseInOutage: a store can be closed while etcd is away.
func TestCloseInOutage(t *testing.T) {
	server := storagetest.StartEtcd(t)
	s := openWith(t, optionsFor(server))
	w, err := s.Watch(t.Context(), "/", 0)
	require.NoError(t, err)
	server.Stop()
	failed := make(chan error)
	go func() {
		_, err := s.Put(t.Context(), "/a", nil, 0)
		failed <- err
	}()
	require.NoError(t, s.Close())
	_, ok := <-w.Events()
	require.False(t, ok)
	require.ErrorIs(t, w.Err(), storage.ErrClosed)
	if err := <-failed; err != nil && err != storage.ErrClosed {
		require.ErrorIs(t, err, storage.ErrUnavailable, "it had failed before")
	}
}

// TestServersShareHistory: what one server's store wrote is what another's sees.
func TestServersShareHistory(t *testing.T) {
	server := storagetest.StartEtcd(t)
	one, two := openWith(t, optionsFor(server)), openWith(t, optionsFor(server))
	options := optionsFor(server)
	options.Prefix = "/tenure2"
	other := openWith(t, options)
	w, err := two.Watch(t.Context(), "/", 0)
	require.NoError(t, err)

	first, err := one.Put(t.Context(), "/a", []byte("1"), 0)
	require.NoError(t, err)
	_, err = two.Put(t.Context(), "/a", []byte("2"), 0)
	var conflict *storage.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, &storage.Record{Key: "/a", Value: []byte("1"), Revision: first}, conflict.Current)
	second, err := two.Put(t.Context(), "/a", []byte("2"), first)
	require.NoError(t, err)
	got, revision, err := one.Get(t.Context(), "/a", 0)
	require.NoError(t, err)
	require.Equal(t, &storage.Record{Key: "/a", Value: []byte("2"), Revision: second}, got)
	require.Equal(t, second, revision)

	// A store under another prefix, that starts with this one, shares only revisions.
	third, err := other.Put(t.Context(), "/a", []byte("3"), 0)
	require.NoError(t, err)
	require.Equal(t, second+1, third)
	fourth, err := one.Delete(t.Context(), "/a", second)
	require.NoError(t, err)
	for _, want := range []int64{first, second, fourth} {
		require.Equal(t, want, (<-w.Events()).Revision)
	}
	page, err := other.List(t.Context(), "", storage.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []storage.Record{{Key: "/a", Value: []byte("3"), Revision: third}}, page.Records)
}

func TestTooLarge(t *testing.T) {
	s := openWith(t, optionsFor(storagetest.StartEtcd(t)))
	for _, size := range []int{1600 << 10, 3 << 20} { // refused by etcd, and by its client
		_, err := s.Put(t.Context(), "/a", make([]byte, size), 0)
		require.ErrorIs(t, err, storage.ErrTooLarge)
	}
	_, err := s.Put(t.Context(), "/a", make([]byte, 1<<20), 0)
	require.NoError(t, err)
}

func TestCompactEvery(t *testing.T) {
	options := optionsFor(storagetest.StartEtcd(t))
	options.CompactEvery = 10 * time.Millisecond
	s := openWith(t, options)
	first, err := s.Put(t.Context(), "/a", nil, 0)
	require.NoError(t, err)
	second, err := s.Put(t.Context(), "/a", nil, first)
	require.NoError(t, err)
	for {
		if _, _, err = s.Get(t.Context(), "/a", first); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, storage.ErrCompacted)
	_, _, err = s.Get(t.Context(), "/a", second)
	require.NoError(t, err, "the present is not compacted")
}

func TestOpenErrors(t *testing.T) {
	for _, prefix := range []string{"tenure", "/\xff"} {
		_, err := etcd.Open(t.Context(),
			etcd.Options{Prefix: prefix, Config: clientv3.Config{Endpoints: []string{"127.0.0.1:1"}}})
		require.ErrorContains(t, err, "expected UTF-8 with a '/' at its start")
	}
	_, err := etcd.Open(t.Context(), etcd.Options{})
	require.ErrorContains(t, err, "etcd: ")
}
