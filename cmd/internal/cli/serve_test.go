package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// TestServeScripts runs the scripts in testdata/serve, which have, beside what those
// in testdata/script have,
//
//	serve ARGS…                     tenure serve in the background, until it serves
//	interrupt                       ends it as an interrupt does; it must end well
//	ask METHOD PATH [FILE [TYPE]]   asks it, with FILE as the body; the answer is on
//	                                stdout, and a code of 400 or more is a failure
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

// serving is a tenure serve that runs.
type serving struct {
	end    context.CancelFunc
	status chan int
	out    *notice
	errs   *bytes.Buffer // to be read when it has ended
}

type serverKey struct{}

// notice is an output, and says when something was written to it.
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
		return arg == "--store" || arg == "--etcd-servers"
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

// A signal ends the server, and the store is as it was acknowledged.
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
		s, err := store.Open(filepath.Join(dir, "tenure.db"), store.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}

// A port that is taken, and an etcd that is not there, are named.
func TestServeElsewhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	for _, row := range []struct {
		name string // what prevents the start
		args []string
		want string
	}{
		{"a port in use", []string{"--store", "tenure.db", "--listen", address},
			"error: listen tcp " + address + ": bind: address already in use\n"},
		{"no etcd", []string{"--etcd-servers", "http://" + address}, "error: the etcd at http://" + address +
			" is unavailable\n"},
	} {
		var out, errs bytes.Buffer
		status := runMain(process.Env{Stdout: &out, Stderr: &errs, Dir: t.TempDir(), Context: t.Context(),
			StoreTimeout: 50 * time.Millisecond}, append([]string{"serve"}, row.args...))
		require.Equal(t, 1, status, row.name)
		require.Empty(t, out.String(), row.name)
		require.Equal(t, row.want, errs.String(), row.name)
	}
}

// What a command stores without a server is what the server stores, byte for byte.
func TestStoresAsServed(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	script, err := os.ReadFile("testdata/stored.yaml")
	require.NoError(t, err)
	offline, served := memory.New(memory.Options{}), memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, offline.Close()); require.NoError(t, served.Close()) })

	uids := 0
	server, err := apiserver.New(t.Context(), apiserver.Options{
		Store: served, Token: "token", Now: now,
		NewUID: func() types.UID { uids++; return types.UID(fmt.Sprintf("uid-%d", uids)) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	offlineUIDs := uids // behind those of the server's own namespaces
	env := testEnv()
	env.Now, env.NewUID = now, func() string { offlineUIDs++; return fmt.Sprintf("uid-%d", offlineUIDs) }
	own, err := store.Serve(env, offline, "test", func() error { return nil })
	require.NoError(t, err)
	place, err := place.NewStore(env, own, "test", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, place.Close()) })

	for step := range strings.SplitSeq(string(script), "\n---\n") {
		var tree map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(step), &tree))
		how := tree["how"].(map[string]any)
		object := tree["object"].(map[string]any)
		manager, _ := how["manager"].(string)
		subresource, _ := how["subresource"].(string)
		isUpdate, _ := how["update"].(bool)
		force, _ := how["force"].(bool)
		w := testWriter(place, manager)
		w.Apply, w.Options.Force, w.Options.Subresource = !isUpdate, force, subresource
		_, err := w.Write(t.Context(), object)
		require.NoError(t, err, step)

		path := how["path"].(string)
		if subresource != "" {
			path += "/" + subresource
		}
		body, err := json.Marshal(object)
		require.NoError(t, err)
		q := httptest.NewRequest(
			http.MethodPatch,
			fmt.Sprintf("%s?fieldManager=%s&force=%t&fieldValidation=Strict", path,
				manager, force),
			bytes.NewReader(body),
		)
		q.Header.Set("Content-Type", "application/apply-patch+yaml")
		if isUpdate {
			q = httptest.NewRequest(http.MethodPut, path+"?fieldManager="+manager, bytes.NewReader(body))
			q.Header.Set("Content-Type", "application/json")
		}
		q.Header.Set("Authorization", "Bearer token")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, q)
		require.Less(t, answer.Code, 300, "%s: %s", step, answer.Body)

		ours, theirs := recordsOf(t, offline), recordsOf(t, served)
		for key, value := range ours {
			require.Equal(t, theirs[key], value, "%s: %s", step, key)
		}
		require.GreaterOrEqual(t, len(ours), 1)
	}
	require.Len(t, recordsOf(t, offline), 13)
}

// recordsOf returns what is in a store, without allocations, which are random.
func recordsOf(t *testing.T, s store.Local) map[string]string {
	out := map[string]string{}
	require.NoError(t, s.Each(func(key string, value []byte) error {
		if !strings.HasPrefix(key, "/ranges/") {
			out[key] = string(value)
		}
		return nil
	}))
	return out
}

// A file that get refuses is not served.
func TestServeDamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tenure.db")
	s, err := store.Open(path, store.Options{})
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
		out, errs := newNotice(), &bytes.Buffer{}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			select {
			case <-out.written: // it serves, which is to be seen below
				cancel()
			case <-ctx.Done():
			}
		}()
		env := process.Env{Stdout: out, Stderr: errs, Dir: dir, Context: ctx, StoreTimeout: time.Second}
		require.Equal(t, 1, runMain(env, args), args[0])
		cancel()
		require.Contains(t, errs.String(), "stored object /core/configmaps/default/a: invalid character", args[0])
		require.Empty(t, out.String(), args[0])
	}
	require.NoFileExists(t, filepath.Join(dir, "tenure.kubeconfig"))
}

// The kubeconfig of a user keeps its current context, and what serve prints to try names
// the one that it added.
func TestServeIntoKubeconfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	before := clientcmdapi.NewConfig()
	before.Clusters["prod"] = &clientcmdapi.Cluster{Server: "https://prod.example.com"}
	before.Contexts["prod"] = &clientcmdapi.Context{Cluster: "prod"}
	before.CurrentContext = "prod"
	require.NoError(t, clientcmd.WriteToFile(*before, path))
	out, errs := newNotice(), &bytes.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-out.written:
			cancel()
		case <-ctx.Done():
		}
	}()
	require.Zero(t, runMain(process.Env{Stdout: out, Stderr: errs, Dir: dir, Context: ctx},
		[]string{"serve", "--store", "tenure.db", "--kubeconfig", "config"}), "%s", errs)
	cancel()
	require.Contains(t, out.String(), "try: kubectl --kubeconfig "+path+" --context tenure get namespaces\n")
	after, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	require.Equal(t, "prod", after.CurrentContext)
	require.Equal(t, "https://prod.example.com", after.Clusters["prod"].Server)
	require.Contains(t, after.Contexts, "tenure")
}
