package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
	"github.com/tenure-ssa/tenure/internal/controlplane"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

const testToken = controlplane.Token

// host is what a server needs from the script or test that uses it.
type host interface {
	MkAbs(name string) string
	Check(err error)
	Fatalf(format string, args ...any)
	Defer(f func())
}

// testHost implements host for a test.
type testHost struct{ *testing.T }

func (h testHost) MkAbs(name string) string { return filepath.Join(h.TempDir(), name) }
func (h testHost) Check(err error)          { require.NoError(h.T, err) }
func (h testHost) Defer(f func())           { h.Cleanup(f) }

// testCluster is the cluster of a script or a test: an API server, and changes that scripts make to the requests of
// its clients.
type testCluster struct {
	server http.Handler
	// noDefinitions forbids reads of CustomResourceDefinitions.
	noDefinitions bool
	// before is called before each patch.
	before func()
}

func newTestCluster(h host, options apiserver.Options) *testCluster {
	options.Token, options.Log = testToken, slog.New(slog.DiscardHandler)
	server, err := apiserver.New(context.Background(), options)
	h.Check(err)
	h.Defer(func() { h.Check(server.Close()) })
	return &testCluster{server: server}
}

// listen serves a handler over HTTP, and returns flags with the paths of a kubeconfig for it and of a discovery
// cache.
func listen(h host, handler http.Handler) (flags []string) {
	listener := httptest.NewServer(handler)
	h.Defer(listener.Close)
	config := h.MkAbs("kubeconfig")
	h.Check(os.WriteFile(config, []byte(kubeconfig(listener.URL)), 0o600))
	return []string{"--kubeconfig", config, "--cache-dir", h.MkAbs(".cache")}
}

func (c *testCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPatch && c.before != nil {
		c.before()
	}
	if c.noDefinitions && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
			`"message":"not for you"}`)
		return
	}
	// clientcmd sends no token to a server without TLS.
	r.Header.Set("Authorization", "Bearer "+testToken)
	c.server.ServeHTTP(w, r)
}

// send sends a request to the server itself, unchanged by scripts. A patch is an apply.
func (c *testCluster) send(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return w
}

// kubeconfig returns a kubeconfig for a server.
func kubeconfig(url string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`, url)
}

func testWriter(p *place.Store, manager string) *place.Writer {
	return &place.Writer{Now: testEnv().Now, Place: p, Apply: true, Options: cluster.WriteOptions{Manager: manager}}
}

func testEnv() *process.Env {
	return &process.Env{
		Now: func() time.Time { return time.Unix(0, 0) }, NewUID: func() string { return "u" },
		Stderr:  &strings.Builder{},
		Context: context.Background(), Server: server.New(),
	}
}

// realServer is the name of an environment variable. If it is set to the path of a kube-apiserver, TestClusterScripts
// runs against that server, with the etcd in PATH, instead of the server of this module:
//
//	go run ./hosts/kube-apiserver build --only stock
//	KUBE_APISERVER=PATH go test ./cmd/internal/cli -run TestClusterScripts -v
const realServer = "KUBE_APISERVER"

// isBefore reports whether the server is a kube-apiserver of an earlier Kubernetes version than the given one, such
// as 1.36.
func isBefore(version string) bool {
	of := realVersion()
	return of != nil && of.LessThan(utilversion.MustParseGeneric(version))
}

// realVersion returns the version of the kube-apiserver that [realServer] names; nil if it names none.
var realVersion = sync.OnceValue(func() *utilversion.Version {
	binary := os.Getenv(realServer)
	if binary == "" {
		return nil
	}
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		panic(err)
	}
	return utilversion.MustParseGeneric(strings.TrimSpace(strings.TrimPrefix(string(out), "Kubernetes ")))
})

// startRealServer starts an etcd and a kube-apiserver for a script, and returns a handler that passes requests to it
// with an administrator's credentials.
func startRealServer(ts host, binary string) http.Handler {
	dir := ts.MkAbs(".cluster")
	ts.Check(os.MkdirAll(dir, 0o700))
	server, err := controlplane.StartAlone(context.Background(), binary, dir)
	ts.Check(err)
	ts.Defer(server.Stop)
	address, err := url.Parse(server.URL)
	ts.Check(err)
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport = controlplane.Client().Transport
	return proxy
}
