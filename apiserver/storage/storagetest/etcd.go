package storagetest

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

// Etcd is an etcd of one member that runs for a test, on a loopback port, with a
// folder of its own.
type Etcd struct {
	// Endpoint is where clients reach it: a URL.
	Endpoint string

	t       testing.TB
	args    []string
	process *exec.Cmd
	exited  chan struct{} // closed when process has

	mu  sync.Mutex
	log []string // the last lines
}

// StartEtcd starts the etcd found in PATH, and ends it with the test. It skips the test
// if there is none. settings, such as "AUTO_COMPACTION_RETENTION=1h", are those of
// etcd's environment without the ETCD_ before them.
func StartEtcd(t testing.TB, settings ...string) *Etcd {
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
	// Between the choice of a port and its use by etcd another process may take it.
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

// freeURL returns a loopback URL that nobody listens on.
func freeURL(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// Start starts it again, with the data it had and at the same endpoint.
func (e *Etcd) Start() {
	e.t.Helper()
	require.Nil(e.t, e.process, "it runs already")
	require.NoError(e.t, e.start())
}

// Stop ends it at once, as a crash does. If it does not run, it does nothing.
func (e *Etcd) Stop() {
	if e.process == nil {
		return
	}
	_ = e.process.Process.Kill()
	<-e.exited
	e.process = nil
}

// start returns when etcd says that it serves.
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
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-ready:
		return nil
	case <-exited:
		err = fmt.Errorf("it has exited: %s", process.ProcessState)
	case <-timeout.C:
		err = fmt.Errorf("it was not ready within %s", patience)
	}
	e.Stop()
	return err
}

// follow keeps the end of the log, and calls ready at the line that says so.
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
}
