package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// countingCluster is a cluster that counts the requests for ConfigMaps.
type countingCluster struct {
	testCluster
	t                   *testing.T
	config              string
	lists, gets, writes atomic.Int32
	underWay, most      atomic.Int32 // writes at the same time
}

// newCountingCluster returns a cluster with ConfigMaps in the namespaces a and b, applied by kubectl. Half of
// them are as manifests of the test want them.
func newCountingCluster(t *testing.T, each int) *countingCluster {
	server, err := apiserver.New(t.Context(), apiserver.Options{
		Token: testToken, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	c := &countingCluster{testCluster: testCluster{server: server}, t: t, config: filepath.Join(t.TempDir(), "kubeconfig")}
	listener := httptest.NewServer(c)
	t.Cleanup(listener.Close)
	require.NoError(t, os.WriteFile(c.config, []byte(kubeconfig(listener)), 0o600))
	for _, namespace := range []string{"a", "b"} {
		c.apply("/api/v1/namespaces/"+namespace, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+namespace+`"}}`)
		for i := range each {
			c.apply(fmt.Sprintf("/api/v1/namespaces/%s/configmaps/c-%d", namespace, i),
				fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d"},"data":{"k":"%d"}}`, i, i%2))
		}
	}
	return c
}

// apply applies an object, past the counters.
func (c *countingCluster) apply(path, body string) {
	r := httptest.NewRequest(http.MethodPatch, path+"?fieldManager=kubectl", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/apply-patch+yaml")
	r.Header.Set("Authorization", "Bearer "+testToken)
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	require.Equal(c.t, http.StatusCreated, w.Code, w.Body)
}

var configMapPath = regexp.MustCompile(`/configmaps(/[^/]+)?$`)

func (c *countingCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if at := configMapPath.FindStringSubmatch(r.URL.Path); at != nil {
		switch {
		case r.Method != http.MethodGet:
			c.writes.Add(1)
			now := c.underWay.Add(1)
			defer c.underWay.Add(-1)
			for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
			}
			time.Sleep(5 * time.Millisecond) // so that writes meet
		case at[1] == "":
			c.lists.Add(1)
		default:
			c.gets.Add(1)
		}
	}
	c.testCluster.ServeHTTP(w, r)
}

// run runs the command and returns its output.
func (c *countingCluster) run(status int, args ...string) string {
	var out, errs bytes.Buffer
	got := runMain(process.Env{Name: "tenure", Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }},
		append(args, "--kubeconfig", c.config, "--cache-dir", filepath.Join(filepath.Dir(c.config), "cache")))
	require.Equal(c.t, status, got, "%s%s", out.String(), errs.String())
	return out.String()
}

// manifests writes manifests of ConfigMaps that set k to 0 into a file.
func (c *countingCluster) manifests(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		fmt.Fprintf(
			&b,
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {k: \"0\"}\n",
			name,
			namespace,
		)
	}
	path := filepath.Join(c.t.TempDir(), "manifests.yaml")
	require.NoError(c.t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// A summary of moves only counts.
func TestSummaryOfMoves(t *testing.T) {
	c := newCountingCluster(t, 3)
	args := []string{"rename", "configmaps", "-A", "--from", "kubectl", "--to", "flux", "--summary"}
	require.Equal(t, "6 objects: 6 renamed, 0 unchanged, 0 failed\n", c.run(0, append(args, "--dry-run")...))
	require.Equal(t, "6 objects: 6 renamed, 0 unchanged, 0 failed\n", c.run(0, append(args, "--yes")...))
	c.run(1, append(args, "--yes", "-o", "yaml")...)
}

// Many live objects are read by lists, few by themselves, and the outcome is the same.
func TestManyPlans(t *testing.T) {
	const each = 40
	c := newCountingCluster(t, each)
	var names []string
	for i := range each {
		names = append(names, fmt.Sprintf("a/c-%d", i), fmt.Sprintf("b/c-%d", i))
	}
	names = append(names, "a/new", "b/new")
	many := c.manifests(names...)
	out := c.run(1, "plan", "-f", many)
	require.EqualValues(t, 2, c.lists.Load(), "a list for each namespace")
	require.Zero(t, c.gets.Load())
	require.EqualValues(t, 42, c.writes.Load(), "a dry run of each that is not unchanged")
	require.Contains(t, out, "configmap/c-1 in a: changed\n")
	require.Contains(t, out, "configmap/new in b: created\n")
	require.NotContains(t, out, "configmap/c-0 in a")
	require.Contains(t, out, "82 objects: 40 unchanged, 0 ownership only, 42 changed, 0 conflict, 0 failed\n")
	require.Contains(t, c.run(1, "plan", "-f", many, "--show-unchanged"), "configmap/c-0 in a: unchanged\n")

	var document struct {
		Objects []struct{ Object, Outcome string }
	}
	require.NoError(t, json.Unmarshal([]byte(c.run(1, "plan", "-f", many, "-o", "json")), &document))
	require.Len(t, document.Objects, 82)
	require.Equal(t, "KIND       OBJECTS  UNCHANGED  OWNERSHIP  CHANGED  CREATED  CONFLICTS\n"+
		"configmap  82       40         0          40       2        0\n", c.run(1, "plan", "-f", many, "--summary"))
	require.JSONEq(t, `{"objects":82,"unchanged":40,"ownershipOnly":0,"changed":40,"created":2,"conflicts":0,"failed":0,
		"kinds":{"configmap":{"objects":82,"unchanged":40,"ownershipOnly":0,"changed":40,"created":2,"conflicts":0}}}`,
		c.run(1, "plan", "-f", many, "--summary", "-o", "json"))

	c.lists.Store(0)
	few := c.manifests("a/c-0", "a/c-1", "b/c-2")
	out = c.run(1, "plan", "-f", few)
	require.Zero(t, c.lists.Load(), "a list costs more than three reads")
	require.EqualValues(t, 3, c.gets.Load())
	require.Contains(t, out, "3 objects: 2 unchanged, 0 ownership only, 1 changed, 0 conflict, 0 failed\n")

	c.gets.Store(0)
	out = c.run(2, "conflicts", "-f", many, "--field-manager", "other")
	require.EqualValues(t, 2, c.lists.Load())
	require.Zero(t, c.gets.Load())
	require.Contains(t, out, "82 objects: 40 with conflicts, 42 without, 0 failed\n")
	require.NotContains(t, out, "no conflict")
	require.Contains(
		t,
		c.run(0, "conflicts", "-f", c.manifests("a/c-0"), "--field-manager", "other"),
		"configmap/c-0 in a: no conflict",
	)
}

// Many objects are written at the same time, but no more than --concurrency says.
func TestManyMoves(t *testing.T) {
	c := newCountingCluster(t, 20)
	out := c.run(0, "transfer", "configmaps", "-A", "--from", "kubectl", "--to", "flux", "--all", "--yes",
		"--concurrency", "5")
	require.Contains(t, out, "40 objects: 40 transferred, 0 unchanged, 0 failed\n")
	require.EqualValues(t, 40, c.writes.Load())
	require.Zero(t, c.gets.Load())
	require.LessOrEqual(t, c.most.Load(), int32(5))
	require.Greater(t, c.most.Load(), int32(1))
	c.run(1, "transfer", "configmaps", "-A", "--from", "flux", "--to", "argo", "--all", "--yes", "--concurrency", "0")
	c.run(3, "plan", "-f", c.manifests("a/c-0"), "--concurrency", "-1")
}
