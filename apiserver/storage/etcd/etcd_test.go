package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

func optionsFor(e *storagetest.Etcd) etcd.Options {
	return etcd.Options{Config: clientv3.Config{Endpoints: []string{e.Endpoint}}}
}

func openWith(t testing.TB, options etcd.Options) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	server := storagetest.StartEtcd(t, "EXPERIMENTAL_WATCH_PROGRESS_NOTIFY_INTERVAL=100ms")
	options := optionsFor(server)
	options.Progress = 100 * time.Millisecond
	stores := 0
	storagetest.Run(t,
		func(t *testing.T) storage.Store {
			stores++
			options.Prefix = fmt.Sprintf("/store-%d/", stores)
			return openWith(t, options)
		},
		storagetest.TellsProgress(),
		storagetest.Reopens(func(t *testing.T, s storage.Store) storage.Store {
			require.NoError(t, s.Close())
			server.Stop()
			server.Start()
			return openWith(t, options)
		}),
	)
}

func BenchmarkStore(b *testing.B) {
	options := optionsFor(storagetest.StartEtcd(b))
	stores := 0
	storagetest.Bench(b, func(b *testing.B) storage.Store {
		stores++
		options.Prefix = fmt.Sprintf("/store-%d", stores)
		s, err := etcd.Open(b.Context(), options)
		require.NoError(b, err)
		return s
	})
}
