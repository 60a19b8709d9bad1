package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

var everything = storage.Retention{Revisions: -1}

func serve(t *testing.T, store storage.Store, err error) *rest.Config {
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return start(t, apiserver.Options{Store: store}).Config()
}

func openEtcd(t *testing.T, e *storagetest.Etcd) *rest.Config {
	store, err := etcd.Open(t.Context(), etcd.Options{Config: clientv3.Config{Endpoints: []string{e.Endpoint}}, Timeout: 2 * time.Second})
	return serve(t, store, err)
}

// TestNothingLost has many clients write to the same objects, and holds that every
// write that was acknowledged is in the history that a watcher sees, and that no
// write undoes another one.
func TestNothingLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		servers func(t *testing.T) []*rest.Config
	}{
		{"memory", func(t *testing.T) []*rest.Config {
			return []*rest.Config{serve(t, memory.New(memory.Options{Retention: everything}), nil)}
		}},
		{"bbolt", func(t *testing.T) []*rest.Config {
			store, err := bbolt.Open(filepath.Join(t.TempDir(), "store"), bbolt.Options{Retention: everything})
			return []*rest.Config{serve(t, store, err)}
		}},
		{"etcd", func(t *testing.T) []*rest.Config {
			return []*rest.Config{openEtcd(t, storagetest.StartEtcd(t))}
		}},
		{"two servers over one etcd", func(t *testing.T) []*rest.Config {
			e := storagetest.StartEtcd(t)
			return []*rest.Config{openEtcd(t, e), openEtcd(t, e)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			configs := c.servers(t)
			l := newLoad(t, configs[0])
			type watcher struct {
				until chan string
				seen  chan *history
			}
			var watchers []watcher
			for _, config := range configs {
				w := watcher{make(chan string, 1), make(chan *history, 1)}
				watchers = append(watchers, w)
				go func() { w.seen <- watchAll(t, config, l.from, w.until) }()
			}
			ctx, cancel := context.WithTimeout(t.Context(), duration(t))
			defer cancel()
			l.run(t, ctx, configs...)
			version := last(t, configs[0])
			var first *history
			for i, w := range watchers {
				w.until <- version
				h := <-w.seen
				l.check(t, configs[i], h)
				if first == nil {
					first = h
				}
				require.Equal(t, first, h, "whoever watches sees one history")
			}
		})
	}
}

// TestKilled kills a server in the midst of writes, over and over, and holds that
// every write that it acknowledged is there.
func TestKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store")
	var l *load
	for round := range kills(t) {
		server, config := serveChild(t, file)
		if l == nil {
			l = newLoad(t, config)
			// What a client does not hear of when the server dies may be done or not.
			l.excused = func(err error) bool { return !unavailable(err) && !isStatus(err) }
		}
		ctx, cancel := context.WithCancel(t.Context())
		before, kill := l.count.Load(), int64(200+100*round)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(t, ctx, config)
		}()
		require.Eventually(t, func() bool { return l.count.Load()-before > kill }, time.Minute, time.Millisecond)
		require.NoError(t, server.Process.Kill())
		cancel()
		<-done
		require.ErrorContains(t, server.Wait(), "killed")
	}
	_, config := serveChild(t, file)
	until := make(chan string, 1)
	until <- last(t, config)
	l.check(t, config, watchAll(t, config, l.from, until))
}

// serveChild serves a file by a process of its own, until it is killed.
func serveChild(t *testing.T, file string) (*exec.Cmd, *rest.Config) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), servedFile+"="+file)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		if child.ProcessState == nil {
			_ = child.Process.Kill()
			_ = child.Wait()
		}
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the server did not start")
	config, err := clientcmd.BuildConfigFromFlags("", file+".kubeconfig")
	require.NoError(t, err)
	config.QPS = -1
	return child, config
}

// TestEtcdStopped stops etcd in the midst of writes and starts it again: errors
// meanwhile are 503 or 504, and what was acknowledged is there.
func TestEtcdStopped(t *testing.T) {
	e := storagetest.StartEtcd(t)
	config := openEtcd(t, e)
	l := newLoad(t, config)
	l.excused = unavailable
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(t, ctx, config)
	}()
	acknowledged := func() (count, interrupted int) {
		l.lock.Lock()
		defer l.lock.Unlock()
		return len(l.acknowledged), l.interrupted
	}
	more := func(than, interruptedThan int) func() bool {
		return func() bool {
			count, interrupted := acknowledged()
			return count > than && interrupted > interruptedThan
		}
	}
	require.Eventually(t, more(200, -1), time.Minute, time.Millisecond)
	e.Stop()
	_, interrupted := acknowledged()
	require.Eventually(t, more(-1, interrupted+clients/2), time.Minute, time.Millisecond)
	e.Start()
	count, _ := acknowledged()
	require.Eventually(t, more(count+200, -1), time.Minute, time.Millisecond)
	cancel()
	<-done
	until := make(chan string, 1)
	until <- last(t, config)
	l.check(t, config, watchAll(t, config, l.from, until))
}
