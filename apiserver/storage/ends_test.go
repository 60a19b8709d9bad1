package storage_test

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	stores "github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcdtest"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

func createPod(t *testing.T, s storage.Interface, name string) *example.Pod {
	out := &example.Pod{}
	require.NoError(t, s.Create(t.Context(), "/pods/"+name, &example.Pod{}, out, 0))
	return out
}

func watchPods(t *testing.T, s storage.Interface) watch.Interface {
	w, err := s.Watch(t.Context(), "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true})
	require.NoError(t, err)
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	return w
}

func requireEnd(t *testing.T, w watch.Interface) {
	for event := range w.ResultChan() {
		require.NotEqual(t, watch.Error, event.Type)
	}
}

// TestEnds checks that the DestroyFunc of a storage ends the watches of this storage only, and that Close ends all
// watches.
func TestEnds(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) stores.Store{
		"memory": func(t *testing.T) stores.Store { return memory.New(memory.Options{}) },
		"bbolt": func(t *testing.T) stores.Store {
			store, err := bbolt.Open(filepath.Join(t.TempDir(), "store"), bbolt.Options{})
			require.NoError(t, err)
			return store
		},
		"etcd": func(t *testing.T) stores.Store {
			config := clientv3.Config{Endpoints: []string{etcdtest.Start(t).Endpoint}}
			store, err := etcd.Open(t.Context(), etcd.Options{Config: config})
			require.NoError(t, err)
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			require.NoError(t, store.Ready(t.Context()))
			config := storagebackend.NewDefaultConfig("", codec).ForResource(example.Resource("pods"))
			ended, destroy, err := store.Open(config, "/pods", newPod, func() runtime.Object { return &example.PodList{} })
			require.NoError(t, err)
			other := openPods(t, store, "/pods", nil)
			createPod(t, ended, "a")
			first, second := watchPods(t, ended), watchPods(t, other)
			destroy()
			requireEnd(t, first)
			createPod(t, other, "b")
			require.Equal(t, watch.Added, (<-second.ResultChan()).Type)
			require.NoError(t, store.Close())
			requireEnd(t, second)
			require.Error(t, store.Ready(t.Context()))
			require.NoError(t, store.Close(), "again")
		})
	}
}

// TestEtcdRestarts checks that writes are kept and that a watch continues when etcd restarts.
func TestEtcdRestarts(t *testing.T) {
	server := etcdtest.Start(t)
	store, err := etcd.Open(t.Context(), etcd.Options{
		Config:  clientv3.Config{Endpoints: []string{server.Endpoint}},
		Timeout: time.Second,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	pods := openPods(t, store, "/pods", nil)
	want := createPod(t, pods, "a")
	w := watchPods(t, pods)
	server.Stop()
	require.ErrorIs(t, store.Ready(t.Context()), etcd.ErrUnavailable)
	server.Restart()
	require.Eventually(t, func() bool { return store.Ready(t.Context()) == nil }, time.Minute, time.Millisecond)
	got := &example.Pod{}
	require.NoError(t, pods.Get(t.Context(), "/pods/a", storage.GetOptions{}, got))
	require.Equal(t, want, got)
	createPod(t, pods, "b")
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
}

// gate is a connection to an etcd. Tests can close and reopen it.
type gate struct {
	config clientv3.Config
	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func newGate(t *testing.T, endpoint string) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{config: clientv3.Config{Endpoints: []string{l.Addr().String()}}}
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		g.close()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
			if err != nil || !g.pass(client, server) {
				_ = client.Close()
			}
		}
	}()
	return g
}

func (g *gate) pass(client, server net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return server.Close() != nil
	}
	g.conns = append(g.conns, client, server)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		}()
	}
	return true
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.conns = nil
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// gated is a store behind a gate, and a client that does not use the gate.
type gated struct {
	*gate
	pods   storage.Interface
	client *clientv3.Client
}

func newGated(t *testing.T) *gated {
	server := etcdtest.Start(t)
	g := newGate(t, server.Endpoint)
	store, err := etcd.Open(t.Context(), etcd.Options{Config: g.config})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return &gated{g, openPods(t, store, "/pods", nil), client}
}

// put writes the value of a Pod several times. It returns the last revision.
func (g *gated) put(t *testing.T, name string, times int) int64 {
	key := etcd.DefaultPrefix + "/pods/" + name
	stored, err := g.client.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, stored.Kvs, 1)
	for range times {
		put, err := g.client.Put(t.Context(), key, string(stored.Kvs[0].Value))
		require.NoError(t, err)
		stored.Header = put.Header
	}
	return stored.Header.Revision
}

func revisionOf(t *testing.T, obj runtime.Object) uint64 {
	if shared, ok := obj.(runtime.CacheableObject); ok {
		obj = shared.GetObject()
	}
	out, err := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	require.NoError(t, err)
	return out
}

// TestEtcdHistoryInParts checks that no event is lost if a store is disconnected during very many writes. etcd then
// sends the writes in several responses; the headers of all have the revision of the last write.
func TestEtcdHistoryInParts(t *testing.T) {
	g := newGated(t)
	seen := revisionOf(t, createPod(t, g.pods, "a"))
	predicate := storage.Everything
	predicate.AllowWatchBookmarks = true
	w, err := g.pods.Watch(t.Context(), "/pods", storage.ListOptions{
		ResourceVersion: strconv.FormatUint(seen, 10), Predicate: predicate, Recursive: true, ProgressNotify: true,
	})
	require.NoError(t, err)
	defer w.Stop()
	g.close()
	const writes = 2500
	g.put(t, "a", writes)
	g.open()
	for got := 0; got < writes; {
		require.NoError(t, g.pods.RequestWatchProgress(t.Context()))
		event := <-w.ResultChan()
		if event.Type == watch.Bookmark {
			require.LessOrEqual(t, revisionOf(t, event.Object), seen, "a bookmark is of what was sent")
			continue
		}
		require.Equal(t, seen+1, revisionOf(t, event.Object))
		seen++
		got++
	}
}

// TestEtcdCompacted checks that watches end if etcd compacts writes before the store has read them.
func TestEtcdCompacted(t *testing.T) {
	g := newGated(t)
	createPod(t, g.pods, "a")
	w := watchPods(t, g.pods)
	defer w.Stop()
	createPod(t, g.pods, "b") // its event shows that the watch reads the history
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	g.close()
	_, err := g.client.Compact(t.Context(), g.put(t, "a", 3))
	require.NoError(t, err)
	g.open()
	event := <-w.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.Equal(t, metav1.StatusReasonExpired, event.Object.(*metav1.Status).Reason)
	again := watchPods(t, g.pods)
	defer again.Stop()
	require.Equal(t, watch.Added, (<-again.ResultChan()).Type)
	createPod(t, g.pods, "c")
	require.Equal(t, watch.Added, (<-again.ResultChan()).Type)
}

// TestEtcdServers checks that watches see the writes of other servers, and that the history of a store begins with
// Open.
func TestEtcdServers(t *testing.T) {
	config := clientv3.Config{Endpoints: []string{etcdtest.Start(t).Endpoint}}
	open := func(prefix string) storage.Interface {
		store, err := etcd.Open(t.Context(), etcd.Options{Config: config, Prefix: prefix})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return openPods(t, store, "/pods", nil)
	}
	for _, prefix := range []string{"", "/", "a/b/"} {
		first := open(prefix)
		before := createPod(t, first, "before")
		second := open(prefix)
		w := watchPods(t, second)
		defer w.Stop()
		after := createPod(t, first, "after")
		require.Equal(t, revisionOf(t, after), revisionOf(t, (<-w.ResultChan()).Object), "prefix %q", prefix)
		createPod(t, open(prefix), "third")
		old, err := open(prefix).Watch(t.Context(), "/pods", storage.ListOptions{
			ResourceVersion: before.ResourceVersion, Predicate: storage.Everything, Recursive: true,
		})
		require.NoError(t, err)
		defer old.Stop()
		require.Equal(t, watch.Error, (<-old.ResultChan()).Type, "410 Expired")
	}
}

// TestCloseUnread checks that Close ends watches whose events are not read.
func TestCloseUnread(t *testing.T) {
	store := memory.New(memory.Options{})
	pods := openPods(t, store, "/pods", nil)
	for i := range 20 {
		createPod(t, pods, fmt.Sprint(i))
	}
	watchPods(t, pods)
	require.NoError(t, store.Close())
}
