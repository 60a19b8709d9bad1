// Package etcdtest starts etcd for tests.
package etcdtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startTimeout is how long etcd may take to start, even on a busy machine.
const startTimeout = 30 * time.Second

// Etcd is a single-member etcd for a test, on a loopback port, with its own data directory.
type Etcd struct {
	// Endpoint is the client URL.
	Endpoint string

	t       testing.TB
	args    []string
	process *exec.Cmd
	exited  chan struct{} // closed when process has exited

	mu  sync.Mutex
	log []string // the last lines
}

// Start starts the etcd in PATH, and stops it when the test ends. It skips the test if PATH has no etcd. settings are
// environment variables of etcd without the prefix ETCD_, such as "AUTO_COMPACTION_RETENTION=1h".
func Start(t testing.TB, settings ...string) *Etcd {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("there is no etcd in PATH (Debian: apt-get install etcd-server)")
	}
	e := &Etcd{t: t}
	t.Cleanup(func() {
		e.Stop()
		if t.Failed() {
			t.Logf("the end of etcd's log:\n%s", strings.Join(e.log, "\n"))
		}
	})
	// If another process takes the port before etcd does, try again.
	for try := 0; ; try++ {
		client, peer := freeURL(t), freeURL(t)
		e.Endpoint = client
		env := append([]string{
			"DATA_DIR=" + t.TempDir(),
			"NAME=test",
			"LISTEN_CLIENT_URLS=" + client,
			"ADVERTISE_CLIENT_URLS=" + client,
			"LISTEN_PEER_URLS=" + peer,
			"INITIAL_ADVERTISE_PEER_URLS=" + peer,
			"INITIAL_CLUSTER=test=" + peer,
		}, settings...)
		e.args = nil
		for _, setting := range env {
			e.args = append(e.args, "ETCD_"+setting)
		}
		err := e.start()
		if err == nil {
			return e
		}
		require.Less(t, try, 3, "etcd did not start: %v", err)
	}
}

// freeURL returns a loopback URL with a free port.
func freeURL(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// Restart starts etcd again after Stop, with the same data and endpoint.
func (e *Etcd) Restart() {
	e.t.Helper()
	require.Nil(e.t, e.process, "it runs already")
	require.NoError(e.t, e.start())
}

// Stop kills etcd. It does nothing if etcd does not run.
func (e *Etcd) Stop() {
	if e.process == nil {
		return
	}
	_ = e.process.Process.Kill()
	<-e.exited
	e.process = nil
}

// start starts etcd, and returns when etcd logs that it is ready.
func (e *Etcd) start() error {
	e.process = exec.Command("etcd")
	e.process.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "ETCD_")
	}), e.args...)
	out, err := e.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := e.process.Start(); err != nil {
		e.process = nil
		return err
	}
	ready, exited := make(chan struct{}), make(chan struct{})
	e.exited = exited
	process := e.process
	go func() {
		defer close(exited)
		e.follow(out, sync.OnceFunc(func() { close(ready) }))
		_ = process.Wait()
	}()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case <-ready:
		return nil
	case <-exited:
		err = fmt.Errorf("it has exited: %s", process.ProcessState)
	case <-timeout.C:
		err = fmt.Errorf("it was not ready within %s", startTimeout)
	}
	e.Stop()
	return err
}

// follow reads etcd's log and keeps the last lines. It calls ready when a line shows that etcd is ready.
func (e *Etcd) follow(out io.Reader, ready func()) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready to serve client requests") {
			ready()
		}
		e.mu.Lock()
		e.log = append(e.log, lines.Text())
		e.log = e.log[max(0, len(e.log)-30):]
		e.mu.Unlock()
	}
	if lines.Err() != nil { // a line is too long; etcd would stop at its next line if nobody read the output
		_, _ = io.Copy(io.Discard, out)
	}
}
