package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

const testToken = "test"

// testCluster is the cluster of a script: an API server behind a listener, with what the
// scripts do to its clients.
type testCluster struct {
	server http.Handler
	// noDefinitions says that CustomResourceDefinitions may not be read.
	noDefinitions bool
	// before is called before each patch.
	before func()
}

func newTestCluster(ts *testscript.TestScript, w *world) *testCluster {
	if binary := os.Getenv(realServer); w.isReal {
		return &testCluster{server: startRealServer(ts, binary)}
	}
	uids := 0
	options := apiserver.Options{
		Token: testToken, Now: w.now, Log: slog.New(slog.DiscardHandler),
		NewUID: func() types.UID { uids++; return types.UID(fmt.Sprintf("uid-%d", uids)) },
	}
	server, err := apiserver.New(context.Background(), options)
	ts.Check(err)
	ts.Defer(func() { _ = server.Close() })
	return &testCluster{server: server}
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

// send sends a request to the server, past what the scripts do to clients.
func (c *testCluster) send(r *http.Request) *httptest.ResponseRecorder {
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+testToken)
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return w
}

// kubeconfig leads to a server.
func kubeconfig(server *httptest.Server) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`, server.URL)
}

func testWriter(p *place.Store, manager string) *place.Writer {
	return &place.Writer{Env: p.Env, Place: p, Apply: true, Options: cluster.WriteOptions{Manager: manager}}
}

func testEnv() *process.Env {
	return &process.Env{
		Now: func() time.Time { return time.Unix(0, 0) }, NewUID: func() string { return "u" },
		Stderr:  &strings.Builder{},
		Context: context.Background(), Server: server.New(),
	}
}
