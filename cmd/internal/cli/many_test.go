package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	flags               []string // to access the cluster
	lists, gets, writes atomic.Int32
	underWay, most      atomic.Int32 // concurrent writes
}

// newCountingCluster returns a cluster with ConfigMaps in the namespaces a and b, applied by kubectl. Half of them
// already have the values of the test's manifests.
func newCountingCluster(t *testing.T, each int) *countingCluster {
	c := &countingCluster{testCluster: *newTestCluster(testHost{t}, apiserver.Options{}), t: t}
	c.flags = listen(testHost{t}, c)
	for _, namespace := range []string{"a", "b"} {
		c.apply("/api/v1/namespaces/"+namespace, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+namespace+`"}}`)
		for i := range each {
			c.apply(fmt.Sprintf("/api/v1/namespaces/%s/configmaps/c-%d", namespace, i),
				fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d"},"data":{"k":"%d"}}`, i, i%2))
		}
	}
	return c
}

// apply applies an object without counting the request.
func (c *countingCluster) apply(path, body string) {
	w := c.send(http.MethodPatch, path+"?fieldManager=kubectl", body)
	require.Equal(c.t, http.StatusCreated, w.Code, w.Body)
}

var configMapPath = regexp.MustCompile(`/configmaps(/[^/]+)?$`)

func (c *countingCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if match := configMapPath.FindStringSubmatch(r.URL.Path); match != nil {
		switch {
		case r.Method != http.MethodGet:
			c.writes.Add(1)
			inFlight := c.underWay.Add(1)
			defer c.underWay.Add(-1)
			for most := c.most.Load(); inFlight > most && !c.most.CompareAndSwap(most, inFlight); most = c.most.Load() {
			}
			time.Sleep(5 * time.Millisecond) // so that writes overlap
		case match[1] == "":
			c.lists.Add(1)
		default:
			c.gets.Add(1)
		}
	}
	c.testCluster.ServeHTTP(w, r)
}

// run runs the command and returns its output.
func (c *countingCluster) run(status int, args ...string) string {
	got, out, errs := output(process.Env{Name: "tenure"}, append(args, c.flags...)...)
	require.Equal(c.t, status, got, "%s%s", out, errs)
	return out
}

// manifests writes manifests of ConfigMaps that set k to 0 into a file.
func (c *countingCluster) manifests(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {k: \"0\"}\n",
			name, namespace)
	}
	path := filepath.Join(c.t.TempDir(), "manifests.yaml")
	require.NoError(c.t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// Many live objects are read by lists, few by single gets, with the same result.
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
	require.Contains(t, c.run(0, "conflicts", "-f", c.manifests("a/c-0"), "--field-manager", "other"),
		"configmap/c-0 in a: no conflict")
}

// A list of live objects is read page by page, in any order of the documents. Paging stops once single gets cost
// less.
func TestPagesOfLists(t *testing.T) {
	const each = 600 // a page has 500
	c := newCountingCluster(t, each)
	names := []string{"a/new", "a/absent"}
	for i := range each {
		names = append(names, fmt.Sprintf("a/c-%d", each-1-i))
	}
	require.Contains(t, c.run(1, "plan", "-f", c.manifests(names...), "--offline"),
		"602 objects: 300 unchanged, 0 ownership only, 302 changed, 0 conflict, 0 failed\n")
	require.EqualValues(t, 2, c.lists.Load())
	require.Zero(t, c.gets.Load())

	c.lists.Store(0)
	names = []string{"a/new", "a/c-9"} // and the second page
	for i := 590; i < each; i++ {
		names = append(names, fmt.Sprintf("a/c-%d", i))
	}
	require.Contains(t, c.run(1, "plan", "-f", c.manifests(names...), "--offline"),
		"12 objects: 5 unchanged, 0 ownership only, 7 changed, 0 conflict, 0 failed\n")
	require.EqualValues(t, 1, c.lists.Load())
	require.EqualValues(t, len(names), c.gets.Load())
}

// Documents that exceed one batch get the same plans as one command for each document.
func TestBatches(t *testing.T) {
	const each = 300
	c := newCountingCluster(t, 2)
	var names []string
	for i := range each {
		names = append(names, fmt.Sprintf("b/c-%d", each-i), fmt.Sprintf("a/c-%d", i))
	}
	names = append(names, "a/c-1", "a/c-299") // duplicates
	many := c.manifests(names...)
	lines := strings.SplitAfter(strings.TrimSpace(c.run(1, "plan", "-f", many, "--offline", "-o", "ndjson"))+"\n", "\n")
	require.Len(t, lines, 2*each+2+1)
	var document struct{ Objects []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(c.run(1, "plan", "-f", many, "--offline", "-o", "json")), &document))
	require.Len(t, document.Objects, 2*each+2)
	for i, object := range document.Objects {
		require.JSONEq(t, string(object), lines[i])
	}
	for _, i := range []int{0, 1, 3, 255, 256, 599} {
		got := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &got))
		require.Equal(t, "configmap/"+names[i][2:], got["object"])
		require.Equal(t, names[i][:1], got["namespace"])
		manifest := c.manifests(names[i])
		alone := map[string]any{}
		args := append([]string{"plan", "-f", manifest, "--offline", "-o", "ndjson"}, c.flags...)
		status, out, _ := output(process.Env{Name: "tenure"}, args...)
		require.Less(t, status, 2)
		require.NoError(t, json.Unmarshal([]byte(out), &alone))
		delete(got, "file")
		delete(alone, "file")
		require.Equal(t, alone, got)
	}
	_, out, errs := output(process.Env{Name: "tenure"}, append([]string{"plan", "-f", many}, c.flags...)...)
	require.Contains(t, out, "602 objects: 1 unchanged, 0 ownership only, 601 changed, 0 conflict, 0 failed\n")
	require.Contains(t, errs, "configmap/c-1 in a is in "+many+" too")
	require.Contains(t, errs, "configmap/c-299 in a is in "+many+" too")
}

// After one list of each kind, plans are applied concurrently, but at most as many at a time as --concurrency allows.
// Results are printed in the order of the documents, and a failure does not stop the others.
func TestManyApplies(t *testing.T) {
	const each = 30
	c := newCountingCluster(t, each)
	var names, written []string
	for i := range each {
		names = append(names, fmt.Sprintf("a/c-%d", i), fmt.Sprintf("a/new-%d", i), fmt.Sprintf("late/new-%d", i))
		if i%2 == 1 {
			written = append(written, fmt.Sprintf("configmap/c-%d in a serverside-applied\n", i))
		}
		written = append(written, fmt.Sprintf("configmap/new-%d in a serverside-applied\n", i),
			fmt.Sprintf("configmap/new-%d in late serverside-applied\n", i))
	}
	file := c.manifests(names...)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = append(text, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: late}\n"...)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	asked := &confirmation{meanwhile: func() {
		c.apply("/api/v1/namespaces/a/configmaps/new-7", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new-7"}}`)
		c.send(http.MethodPatch, "/api/v1/namespaces/a/configmaps/c-1?fieldManager=other",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-1"},"data":{"more":"x"}}`)
		c.lists.Store(0)
		c.gets.Store(0)
		c.writes.Store(0)
	}}
	env := process.Env{Name: "tenure", Stdin: asked, Terminal: func(s any) bool { return s == asked }}
	status, out, errs := output(env, append([]string{"plan", "-f", file, "--apply", "--concurrency", "5"}, c.flags...)...)
	require.Equal(t, statusFailed, status, errs)
	want := strings.Replace(strings.Join(written, ""), "configmap/new-7 in a serverside-applied\n", "", 1)
	want = strings.Replace(want, "configmap/c-1 in a serverside-applied\n", "", 1)
	require.Equal(t, "namespace/late serverside-applied\n"+want, out[strings.Index(out, "namespace/late serverside"):])
	require.Equal(t, 1, strings.Count(errs, "did not exist when this was shown"), errs)
	require.Contains(t, errs, "configmap/c-1: the object has changed since it was read")
	require.EqualValues(t, 2, c.lists.Load(), "one for each namespace")
	require.Zero(t, c.gets.Load())
	require.LessOrEqual(t, c.most.Load(), int32(5))
	require.Greater(t, c.most.Load(), int32(1))
	require.EqualValues(t, len(written)-1, c.writes.Load(), "one write of each, but none of new-7")
}

// Moves write objects concurrently, but at most as many at a time as --concurrency allows.
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

// A long interleave of a scenario shows its progress. Interrupted, the command prints the result so far and how many
// scenarios did not run.
func TestInterruptedScenario(t *testing.T) {
	dir := t.TempDir()
	text := "-- schema --\nspec: {type: object, properties: {a: {type: integer}}}\n-- interleave limit=100000 --\n"
	for _, name := range strings.Split("a b c d e f g h i j k l", " ") {
		text += "-- apply " + name + " --\nspec: {a: 1}\n"
	}
	text += "-- orders --\n"
	write(t, dir, map[string]string{"1.txtar": text, "2.txtar": text})
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &lineInterrupter{interrupt: cancel}
	var stdout strings.Builder
	status := runMain(process.Env{
		Dir: dir, Stdout: &stdout, Stderr: stderr, Context: ctx, Terminal: func(any) bool { return true },
	}, []string{"test", "--update", "."})
	require.Equal(t, 1, status)
	require.Contains(t, stderr.text.String(), "interleave limit=100000")
	require.Regexp(t, `\d+ of 479001600 orders run, interrupted, a sample; they converge: 1 object`, stdout.String())
	require.Regexp(t, `(?m)^1 scenario: 0 passed, 1 failed$`, stdout.String())
	require.Contains(t, stderr.text.String(), "error: interrupted: 1 scenario was not run\n")
	after, err := os.ReadFile(dir + "/1.txtar")
	require.NoError(t, err)
	require.Equal(t, text, string(after), "nothing is written of what was not finished")
}

// lineInterrupter is a stream that sends an interrupt after a number of lines; for 0, after the first output.
type lineInterrupter struct {
	text      strings.Builder
	lines     int
	interrupt func()
}

func (w *lineInterrupter) Write(p []byte) (int, error) {
	if w.lines -= strings.Count(string(p), "\n"); w.lines <= 0 {
		w.interrupt()
	}
	return w.text.Write(p)
}

// An interrupted move has printed each object that was written. It also prints how many objects were not written, and
// how to continue.
func TestInterruptedMove(t *testing.T) {
	const each = 40
	c := newCountingCluster(t, each)
	ctx, cancel := context.WithCancel(t.Context())
	stdout := &lineInterrupter{lines: 10, interrupt: cancel}
	var stderr strings.Builder
	args := append([]string{"rename", "configmaps", "-A", "--from", "kubectl", "--to", "flux it", "--yes", "--concurrency",
		"2"}, c.flags...)
	status := runMain(process.Env{Name: "kubectl-tenure", Stdout: stdout, Stderr: &stderr, Context: ctx}, args)
	require.Equal(t, 1, status)
	written := strings.Count(stdout.text.String(), " renamed\n")
	require.GreaterOrEqual(t, written, 10)
	require.Less(t, written, 20)
	require.Contains(t, stdout.text.String(), fmt.Sprintf("80 objects: %d renamed, 0 unchanged, 0 failed\n", written))
	require.Contains(t, stderr.String(), fmt.Sprintf("error: interrupted: %d renamed, %d objects were not; to continue: "+
		"kubectl tenure rename configmaps -A --from kubectl --to 'flux it' --yes", written, 2*each-written))
	require.Contains(t, c.run(0, "get", "configmaps", "-A"), "flux it")
	require.Contains(t, c.run(0, "rename", "configmaps", "-A", "--from", "kubectl", "--to", "flux it", "--yes"),
		fmt.Sprintf("%d renamed", 2*each-written))
}
