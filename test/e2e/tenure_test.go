package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
)

// clusterKey is where a script keeps its server.
type clusterKey struct{}

// TestTenure runs the scripts that the command is tested with against the API server
// itself: the program as it is built, TLS, and the server's own defaults. The
// commands beside those of testscript are the ones of the command's own test.
func TestTenure(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "tenure"), "github.com/tenure-ssa/tenure/cmd/tenure")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "cmd", "internal", "cli", "testdata", "cluster"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("KUBECACHEDIR", filepath.Join(env.WorkDir, ".cache"))
			env.Values[clusterKey{}] = new(*apiserver.Running)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster": startCluster, "create": send(http.MethodPost), "put": send(http.MethodPut), "serves": serveFolder,
			"tenure": func(ts *testscript.TestScript, neg bool, args []string) {
				want := 0
				if neg {
					want = 1
				}
				runTenure(ts, want, args)
			},
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				var want int
				_, err := fmt.Sscan(args[0], &want)
				ts.Check(err)
				runTenure(ts, want, args[1:])
			},
		},
	})
}

// runTenure runs the program, whose @ stands for the cluster of $KUBECONFIG.
func runTenure(ts *testscript.TestScript, want int, args []string) {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "@" })
	err := ts.Exec("tenure", args...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("tenure ended with exit status %d, expected %d", got, want)
	}
}

// serveFolder serves a folder of the script over HTTP, at $SITE.
func serveFolder(ts *testscript.TestScript, _ bool, args []string) {
	site := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(site.Close)
	ts.Setenv("SITE", site.URL)
}

func startCluster(ts *testscript.TestScript, _ bool, _ []string) {
	path := ts.MkAbs("kubeconfig")
	server, err := apiserver.Start(context.Background(), apiserver.Options{Kubeconfig: path})
	ts.Check(err)
	ts.Defer(func() { _ = server.Close() })
	*ts.Value(clusterKey{}).(**apiserver.Running) = server
	ts.Setenv("KUBECONFIG", path)
}

// send returns a command that sends an object to the cluster.
func send(method string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		config := (*ts.Value(clusterKey{}).(**apiserver.Running)).Config()
		client, err := rest.HTTPClientFor(config)
		ts.Check(err)
		body, err := yaml.YAMLToJSON([]byte(ts.ReadFile(args[1])))
		ts.Check(err)
		url := strings.TrimSuffix(config.Host, "/") + args[0] + "?fieldManager=" + args[2]
		request, err := http.NewRequest(method, url, bytes.NewReader(body))
		ts.Check(err)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		ts.Check(err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		ts.Check(err)
		if response.StatusCode >= http.StatusBadRequest {
			ts.Fatalf("%s: %s", response.Status, text)
		}
	}
}
