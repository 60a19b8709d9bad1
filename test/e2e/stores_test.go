package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcdtest"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

const everything = 1 << 40 // revisions or bytes that no test reaches

// serve starts a server for a store in this process.
func serve(t *testing.T, store storage.Store) *rest.Config {
	return start(t, apiserver.Options{Store: store}).Config()
}

// openEtcd opens the store in an etcd, which may take up to timeout to respond.
func openEtcd(t *testing.T, e *etcdtest.Etcd, timeout time.Duration) storage.Store {
	store, err := etcd.Open(t.Context(), etcdOptions(e.Endpoint, timeout))
	return closing(t, store, err)
}

// closing closes a store when the test ends.
func closing(t *testing.T, store storage.Store, err error) storage.Store {
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// TestNothingLost lets many clients write to the same objects. Each acknowledged write must be in the history of each
// watcher, and no write may undo another one.
func TestNothingLost(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(t *testing.T) (storage.Store, *etcdtest.Etcd)
	}{
		{"memory", func(t *testing.T) (storage.Store, *etcdtest.Etcd) {
			return closing(t, memory.New(memory.Options{HistoryBytes: everything, HistoryRevisions: everything}), nil), nil
		}},
		{"bbolt", func(t *testing.T) (storage.Store, *etcdtest.Etcd) {
			store, err := bbolt.Open(filepath.Join(t.TempDir(), "store"),
				bbolt.Options{HistoryBytes: everything, HistoryRevisions: everything})
			return closing(t, store, err), nil
		}},
		{"etcd", func(t *testing.T) (storage.Store, *etcdtest.Etcd) {
			e := etcdtest.Start(t)
			return openEtcd(t, e, patience), e
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, e := c.open(t)
			config := serve(t, store)
			l := newLoad(t, config)
			followers := follow(t, 0, l.from, config)
			ctx, cancel := context.WithTimeout(t.Context(), duration(t))
			defer cancel()
			l.run(t, ctx, config)
			versions := l.last(t, config)
			var h *history
			if last := versions[contended-1]; e == nil {
				h = readHistory(t, store, l.from, last)
			} else {
				h = readEtcd(t, e, l.from, last)
			}
			l.check(t, h, config)
			requireSame(t, h, versions, followers)
		})
	}
}

// TestKilled repeatedly kills a server during writes, and checks that no acknowledged write is lost.
func TestKilled(t *testing.T) {
	server := startProcesses(t, served{File: filepath.Join(t.TempDir(), "store")}, 1)[0]
	l := newLoad(t, server.config)
	l.excused = interrupted
	for round := range kills(t) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(t, ctx, server.config)
		}()
		l.more(t, 100+20*round)
		server.kill()
		cancel()
		<-done
		server.restart()
	}
	l.checkEnd(t, server.config)
}

// TestEtcdStopped stops and restarts etcd during writes. In the meantime, errors must be 503 or 504, and no
// acknowledged write may be lost. Watches must see all writes. An informer must have the final objects; its watch may
// end while etcd has no leader, and then it lists again.
func TestEtcdStopped(t *testing.T) {
	e := etcdtest.Start(t)
	config := start(t, apiserver.Options{
		Store: openEtcd(t, e, patience), Limits: apiserver.Limits{Request: 2 * time.Second}, // the default is a minute
	}).Config()
	l := newLoad(t, config)
	l.excused = unavailable
	followers := follow(t, 0, l.from, config)
	held := inform(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(t, ctx, config)
	}()
	l.more(t, 200)
	e.Stop()
	_, before := l.counts()
	require.Eventually(t, func() bool {
		_, count := l.counts()
		return count > before+clients/2
	}, patience, tick)
	e.Restart()
	l.more(t, 200)
	cancel()
	<-done
	versions := l.last(t, config)
	h := readEtcd(t, e, l.from, versions[contended-1])
	l.check(t, h, config)
	requireSame(t, h, versions, followers)
	held.requireState(t, h)
}
