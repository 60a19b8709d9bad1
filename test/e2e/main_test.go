// Package e2e tests the API server with real clients: kubectl, client-go and controller-runtime, and with many of them
// at the same time against each store.
//
// The duration of some tests can be set; by default they are short:
//
//	E2E_DURATION=1m E2E_KILLS=20 go test ./test/e2e -v -timeout 1h -run 'NothingLost|Killed|EtcdStopped|Servers'
//
// The servers of TestServers are processes that share the etcd in PATH. Only an etcd with ordered progress
// notifications (3.4.31, 3.5.13 or newer) can show that lists of the watch cache wait for progress.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tenure-ssa/tenure/apiserver"
)

func TestMain(m *testing.M) {
	if value := os.Getenv(servedStore); value != "" {
		var store served
		err := json.Unmarshal([]byte(value), &store)
		if err = errors.Join(err, store.run()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Parallel tests usually wait for processes and clocks, so many can run. A flag on the command line overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	// testscript puts kubectl of go.mod first in PATH.
	machineKubectl, _ = exec.LookPath("kubectl")
	// Clients log errors that they also return.
	klog.SetLogger(logr.Discard())
	testscript.Main(m, map[string]func(){"kubectl": kubectl, "ages": ages})
}

// machineKubectl is the path of the machine's kubectl, or empty.
var machineKubectl string

// kubectl is kubectl at the version of go.mod. This binary runs it when it is called by the name kubectl.
func kubectl() {
	klog.ClearLogger()
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

var (
	age     = regexp.MustCompile(`\b(\d+y)?\d+[dy]\b`)
	padding = regexp.MustCompile(` {2,}`)
)

// ages runs a command and prints AGE in place of ages. In a script the server's clock stands still, but
// kube-apiserver's code computes ages by the machine's clock.
func ages() {
	out, err := exec.Command(os.Args[1], os.Args[2:]...).Output()
	fmt.Print(padding.ReplaceAllString(age.ReplaceAllString(string(out), "AGE"), "  "))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start starts a server, and stops it when the test ends.
func start(t testing.TB, options apiserver.Options) *apiserver.Running {
	server, err := apiserver.Start(context.Background(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

// stockServer returns the configuration for the server at KUBE_APISERVER, or nil if that is not set.
func stockServer() *rest.Config {
	url := os.Getenv("KUBE_APISERVER")
	if url == "" {
		return nil
	}
	return &rest.Config{
		Host: url, BearerToken: os.Getenv("KUBE_TOKEN"), TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
}

// startCache starts a cache, and stops it when the test ends.
func startCache(t testing.TB, config *rest.Config, options cache.Options) cache.Cache {
	options.Scheme = scheme.Scheme
	started, err := cache.New(config, options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- started.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return started
}

// documentsBut returns an object of each built-in kind except kinds.
func documentsBut(t *testing.T, kinds ...string) (all []map[string]any) {
	data, err := os.ReadFile("../../cmd/internal/cli/testdata/kinds.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(data) {
		var tree map[string]any
		require.NoError(t, utiljson.Unmarshal(line, &tree))
		if !slices.Contains(kinds, tree["kind"].(string)) {
			all = append(all, tree)
		}
	}
	return all
}

// seedOf returns the seed of a random test: E2E_SEED, or 1.
func seedOf(t *testing.T) uint64 {
	seed := uint64(1)
	if text := os.Getenv("E2E_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		require.NoError(t, err)
	}
	return seed
}

// duration is how long a test loads a server, from E2E_DURATION.
func duration(t testing.TB) time.Duration {
	text := os.Getenv("E2E_DURATION")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// kills is how often a test kills a server, from E2E_KILLS.
func kills(t testing.TB) int {
	text := os.Getenv("E2E_KILLS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
