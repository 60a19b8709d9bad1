package storage_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// TestEnds: the DestroyFunc of a storage ends its watches and leaves those of others, Close ends all.
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

// TestEtcdRestarts: what was written is there, and a watch goes on.
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
