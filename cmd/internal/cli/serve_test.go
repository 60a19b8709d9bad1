package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// TestServeScripts runs the scripts in testdata/serve. They have these commands besides the ones of TestScripts:
//
//	serve ARGS…                     runs tenure serve in the background; waits until it serves
//	interrupt                       interrupts it; it must exit with status 0
//	ask METHOD PATH [FILE [TYPE]]   sends it a request, with FILE as the body; prints the response,
//	                                and fails for codes of 400 and more
func TestServeScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/serve",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Values[worldKey{}] = newWorld()
			env.Values[serverKey{}] = &serving{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"tenure": runTenure, "clock": setClock, "serve": startServing, "interrupt": stopServing, "ask": ask,
		},
	})
}

// serving is a running tenure serve.
type serving struct {
	end    context.CancelFunc
	status chan int
	out    *notice
	errs   *bytes.Buffer // to be read after the command has ended
}

type serverKey struct{}

// notice is a stream that signals its first write.
type notice struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed with the first write
}

func newNotice() *notice { return &notice{written: make(chan struct{})} }

func (n *notice) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text.Len() == 0 {
		close(n.written)
	}
	return n.text.Write(p)
}

func (n *notice) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// untilNotice runs the command, and interrupts it as soon as it has written to stdout.
func untilNotice(env process.Env, args ...string) (status int, stdout, stderr string) {
	out, errs := newNotice(), &bytes.Buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-out.written:
			cancel()
		case <-ctx.Done():
		}
	}()
	env.Stdout, env.Stderr, env.Context = out, errs, ctx
	status = runMain(env, args)
	cancel()
	return status, out.String(), errs.String()
}

func startServing(ts *testscript.TestScript, neg bool, args []string) {
	w := ts.Value(worldKey{}).(*world)
	ctx, cancel := context.WithCancel(context.Background())
	s := &serving{end: cancel, status: make(chan int, 1), out: newNotice(), errs: &bytes.Buffer{}}
	var uids atomic.Int64
	env := process.Env{
		Stdout: s.out, Stderr: s.errs, Dir: ts.MkAbs("."), Context: ctx,
		Now:          w.now,
		NewUID:       func() string { return fmt.Sprintf("00000000-0000-4000-9000-%012d", uids.Add(1)) },
		StoreTimeout: 50 * time.Millisecond,
	}
	if args = append([]string{"serve"}, args...); !slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--store" || arg == "--etcd-servers" || arg == "--memory"
	}) {
		args = append(args, "--store", "tenure.db")
	}
	go func() { s.status <- runMain(env, args) }()
	ts.Defer(cancel)
	select {
	case <-s.out.written:
		if neg {
			ts.Fatalf("it serves")
		}
		*ts.Value(serverKey{}).(*serving) = *s
		fmt.Fprint(ts.Stdout(), s.out.String())
	case status := <-s.status:
		if !neg || status != 1 {
			ts.Fatalf("exit status %d: %s", status, s.errs)
		}
		fmt.Fprint(ts.Stderr(), s.errs)
	}
}

func stopServing(ts *testscript.TestScript, _ bool, _ []string) {
	s := ts.Value(serverKey{}).(*serving)
	s.end()
	if status := <-s.status; status != 0 {
		ts.Fatalf("exit status %d: %s", status, s.errs)
	}
	fmt.Fprint(ts.Stderr(), s.errs)
}

func ask(ts *testscript.TestScript, neg bool, args []string) {
	config, err := clientcmd.BuildConfigFromFlags("", ts.MkAbs("tenure.kubeconfig"))
	ts.Check(err)
	client, err := rest.HTTPClientFor(config)
	ts.Check(err)
	defer client.CloseIdleConnections()
	var body io.Reader
	if len(args) > 2 {
		body = strings.NewReader(ts.ReadFile(args[2]))
	}
	q, err := http.NewRequest(args[0], config.Host+args[1], body)
	ts.Check(err)
	q.Header.Set("Content-Type", "application/yaml")
	if len(args) > 3 {
		q.Header.Set("Content-Type", args[3])
	}
	answer, err := client.Do(q)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", text)
	if failed := answer.StatusCode >= 400; failed != neg {
		ts.Fatalf("%s: %s", answer.Status, text)
	}
}

// A signal ends the server, and the store then contains every acknowledged write.
func TestServeSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := t.TempDir()
		out, errs := newNotice(), &bytes.Buffer{}
		ended := make(chan int, 1)
		go func() {
			ended <- runMain(process.Env{Stdout: out, Stderr: errs, Dir: dir}, []string{"serve", "--store", "tenure.db"})
		}()
		select {
		case <-out.written:
		case status := <-ended:
			require.Fail(t, "it does not serve", "%d: %s", status, errs)
		}
		info, err := os.Stat(filepath.Join(dir, "tenure.kubeconfig"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(signal))
		require.Zero(t, <-ended, "%s: %s", signal, errs)
		require.Empty(t, errs.String())
		s, err := store.Open(filepath.Join(dir, "tenure.db"), bbolt.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}

// The server refuses to serve a file that get refuses to read.
func TestServeDamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tenure.db")
	s, err := store.Open(path, bbolt.Options{})
	require.NoError(t, err)
	server, err := apiserver.New(t.Context(), apiserver.Options{
		Store: s, DisableNamespaceLifecycle: true,
		Objects: []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}},
	})
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.NoError(t, s.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	const envelope = "k8s\x00"
	require.Contains(t, string(data), envelope)
	require.NoError(t, os.WriteFile(path, bytes.Replace(data, []byte(envelope), []byte("x8s\x00"), 1), 0o600))

	for _, args := range [][]string{{"get", "configmap", "a", "--store", "tenure.db"}, {"serve", "--store", "tenure.db"}} {
		status, out, errs := untilNotice(process.Env{Dir: dir, StoreTimeout: time.Second}, args...)
		require.Equal(t, 1, status, args[0])
		require.Contains(t, errs, "stored object /core/configmaps/default/a: invalid character", args[0])
		require.Empty(t, out, args[0])
	}
	require.NoFileExists(t, filepath.Join(dir, "tenure.kubeconfig"))
}
