package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

var update = flag.Bool("update", false, "write what the scripts print into them")

// world is the state that the commands of a script share.
type world struct {
	clock atomic.Pointer[time.Time] // servers read it concurrently
	uids  int
	// isReal is true for a kube-apiserver that [realServer] names.
	isReal  bool
	cluster *testCluster
}

func newWorld() *world {
	w := &world{}
	w.set(time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC))
	return w
}

func (w *world) now() time.Time { return *w.clock.Load() }

func (w *world) set(now time.Time) { w.clock.Store(&now) }

type worldKey struct{}

// TestScripts runs the scripts in testdata/script, in process. Besides the commands of testscript, scripts can use:
//
//	tenure [<FILE] ARGS…   the command, with FILE as its stdin
//	clock TIME             sets its clock, in RFC 3339
//	hold FILE              keeps a store open and locked, as another process would
//	exits STATUS ARGS…     the command, which must return this exit status
//	answers TEXT ARGS…     the command, on a terminal, with TEXT typed into it
//	cluster [validated]    starts a cluster; commands use it with the argument @. With validated, the cluster and
//	                       stores validate objects of built-in kinds
//	secretive              makes the cluster forbid reads of CustomResourceDefinitions
//	create PATH FILE MANAGER  creates an object in the cluster, with a POST to a path
//	put PATH FILE MANAGER  updates an object in the cluster
//	serves FOLDER          serves the files of a folder, at $SITE
//	meddle PATH FILE MANAGER  updates an object as put does, but just before the cluster's next patch
//
// UIDs count up from 1, and the clock does not advance by itself.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script")
}

// TestClusterScripts runs the scripts in testdata/cluster, each against a cluster of its own. The scripts expect only
// what every API server does. Lines with the condition [before:1.N] run only on a kube-apiserver of an older
// Kubernetes version.
func TestClusterScripts(t *testing.T) { runScripts(t, "testdata/cluster") }

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                dir,
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			w := newWorld()
			if w.isReal = dir == "testdata/cluster" && os.Getenv(realServer) != ""; w.isReal {
				w.set(time.Now())
			}
			env.Values[worldKey{}] = w
			return nil
		},
		Condition: func(name string) (bool, error) {
			if version, ok := strings.CutPrefix(name, "before:"); ok {
				return isBefore(version), nil
			}
			if name != "kube-apiserver" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Getenv(realServer) != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"tenure": runTenure, "clock": setClock, "hold": holdStore,
			"exits": runExits, "follow": followSuggestion, "soon": runSoon, "answers": runAnswers, "cluster": startCluster,
			"secretive": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Value(worldKey{}).(*world).cluster.noDefinitions = true
			},
			"serves": serveFolder,
			"put":    send(http.MethodPut), "create": send(http.MethodPost), "meddle": meddle,
		},
	})
}

func runTenure(ts *testscript.TestScript, neg bool, args []string) {
	switch status := run(ts, args, nil); {
	case status == 0 && neg:
		ts.Fatalf("tenure ended well, expected exit status 1")
	case status != 0 && !neg:
		ts.Fatalf("tenure ended with exit status %d", status)
	case status > 1:
		ts.Fatalf("tenure ended with exit status %d, expected 1", status)
	}
}

func runExits(ts *testscript.TestScript, _ bool, args []string) {
	if status := fmt.Sprint(run(ts, args[1:], nil)); status != args[0] {
		ts.Fatalf("tenure ended with exit status %s, expected %s", status, args[0])
	}
}

// followSuggestion runs the command that the last command suggested. A pattern selects the suggestion, by its text or
// by the line before it.
func followSuggestion(ts *testscript.TestScript, neg bool, args []string) {
	pattern, before := regexp.MustCompile("(?m)"+args[0]), ""
	for line := range strings.Lines(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
		isMeant := pattern.MatchString(before + line)
		before = line
		_, command, ok := strings.Cut(line, "tenure ")
		if !isMeant || !ok {
			continue
		}
		words, err := exec.CommandContext(context.Background(), "sh", "-c",
			`tenure() { printf '%s\0' "$@"; }; tenure `+command).Output()
		ts.Check(err)
		args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
		if !slices.Contains([]string{"blame", "extract", "policy"}, args[0]) {
			args = append(args, "--yes")
		}
		runTenure(ts, neg, args)
		return
	}
	ts.Fatalf("nothing is suggested that matches %s", args[0])
}

// runSoon runs a command until its output contains a text: on some servers, a policy takes effect after a while.
func runSoon(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var out strings.Builder
		run(ts, args[1:], func(env *process.Env) { env.Stdout = &out })
		if strings.Contains(out.String(), args[0]) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("the output never had %q", args[0])
		}
	}
}

func runAnswers(ts *testscript.TestScript, neg bool, args []string) {
	status := run(ts, args[1:], func(env *process.Env) {
		env.Stdin = strings.NewReader(args[0] + "\n")
		env.Terminal = func(any) bool { return true }
	})
	if (status != 0) != neg {
		ts.Fatalf("tenure ended with exit status %d", status)
	}
}

// run runs the command in the environment that change prepares.
func run(ts *testscript.TestScript, args []string, change func(*process.Env)) int {
	w := ts.Value(worldKey{}).(*world)
	env := process.Env{
		Name: ts.Getenv("PROGRAM"), Getenv: ts.Getenv,
		Stdout: ts.Stdout(), Stderr: ts.Stderr(), Dir: ts.MkAbs("."),
		Now:          w.now,
		NewUID:       func() string { w.uids++; return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.uids) },
		StoreTimeout: 50 * time.Millisecond,
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "<") {
		env.Stdin = strings.NewReader(ts.ReadFile(args[0][1:]))
		args = args[1:]
	}
	if change != nil {
		change(&env)
	}
	if i := slices.Index(args, "@"); i >= 0 {
		args = slices.Replace(slices.Clone(args), i, i+1, "--kubeconfig", ts.Getenv("KUBECONFIG"), "--cache-dir",
			ts.MkAbs(".cache"))
	}
	return runMain(env, args)
}

// runMain runs the command, which includes an API server, without this process' environment variables.
func runMain(env process.Env, args []string) int {
	env.Server = server.New()
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	return Main(env, args)
}

// output runs the command, and returns what it prints.
func output(env process.Env, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env.Stdout, env.Stderr = &out, &errs
	status = runMain(env, args)
	return status, out.String(), errs.String()
}

// write writes files into a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// startCluster starts a cluster, and leaves its kubeconfig in $KUBECONFIG.
func startCluster(ts *testscript.TestScript, _ bool, args []string) {
	w := ts.Value(worldKey{}).(*world)
	if w.isReal {
		w.cluster = &testCluster{server: startRealServer(ts, os.Getenv(realServer))}
	} else {
		uids := 0
		w.cluster = newTestCluster(ts, apiserver.Options{
			Now: w.now, NewUID: func() types.UID { uids++; return types.UID(fmt.Sprintf("uid-%d", uids)) },
		})
	}
	ts.Setenv("KUBECONFIG", listen(ts, w.cluster)[1])
}

// serveFolder serves the files of a folder over HTTP.
func serveFolder(ts *testscript.TestScript, _ bool, args []string) {
	site := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(site.Close)
	ts.Setenv("SITE", site.URL)
}

// send returns a command that sends an object to the cluster.
func send(method string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		body, err := yaml.YAMLToJSON([]byte(ts.ReadFile(args[1])))
		ts.Check(err)
		w := ts.Value(worldKey{}).(*world)
		response := w.cluster.send(method, args[0]+"?fieldManager="+args[2], string(body))
		if response.Code >= http.StatusBadRequest {
			ts.Fatalf("%d: %s", response.Code, response.Body)
		}
		if w.isReal && strings.HasSuffix(args[0], "/customresourcedefinitions") {
			waitForGroup(ts, w.cluster, body)
		}
	}
}

// waitForGroup waits until the API group of a CustomResourceDefinition is served, which takes a kube-apiserver a
// moment.
func waitForGroup(ts *testscript.TestScript, c *testCluster, definition []byte) {
	var crd apiextensionsv1.CustomResourceDefinition
	ts.Check(json.Unmarshal(definition, &crd))
	path := "/apis/" + crd.Spec.Group + "/" + crd.Spec.Versions[0].Name + "/" + crd.Spec.Names.Plural
	for range 100 {
		if c.send(http.MethodGet, path, "").Code == http.StatusOK {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	ts.Fatalf("%s is not served", path)
}

func meddle(ts *testscript.TestScript, _ bool, args []string) {
	w := ts.Value(worldKey{}).(*world)
	body, err := yaml.YAMLToJSON([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	w.cluster.before = func() {
		w.cluster.before = nil
		response := w.cluster.send(http.MethodPut, args[0]+"?fieldManager="+args[2], string(body))
		if response.Code != http.StatusOK {
			ts.Fatalf("%d: %s", response.Code, response.Body)
		}
	}
}

func setClock(ts *testscript.TestScript, _ bool, args []string) {
	now, err := time.Parse(time.RFC3339, args[0])
	ts.Check(err)
	ts.Value(worldKey{}).(*world).set(now)
}

func holdStore(ts *testscript.TestScript, _ bool, args []string) {
	s, err := store.Open(ts.MkAbs(args[0]), bbolt.Options{})
	ts.Check(err)
	ts.Defer(func() { _ = s.Close() })
}

// Every command has a description, examples and its exit statuses in its help.
func TestHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		require.NotEmpty(t, cmd.Long, cmd.CommandPath())
		require.NotEmpty(t, cmd.Example, cmd.CommandPath())
		if cmd.Name() != "version" {
			require.Contains(t, cmd.Long, "Exit status: 0", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			require.LessOrEqual(t, len(line), 84, "%s: %s", cmd.CommandPath(), line)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(Root(&process.Env{Server: server.New()}))
}

// inputs are malformed or unusual inputs of people and programs.
var inputs = []string{
	"", "---", "a: b", "{", "[", "{}", "[]", "null", "1", "\x00", "\xff", "{}{}", "{} x", "--- {a: 1}", "%YAML " +
		"1.1\n---\na: 1",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}",
	"apiVersion: v1\nkind: List\nitems: [1]", "apiVersion: v1\nkind: List\nitems: {}",
	"apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}]",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, managedFields: 3, uid: 3, generation: x}",
	"apiVersion: v1\nkind: ConfigMap\nmetadata: [a]",
	"apiVersion: v1\nkind: Status\nmetadata: {name: a}",
	"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: null\nstatus: 3",
	"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n" +
		"spec: {group: g, scope: Cluster, names: {kind: K}, versions: [{name: v1, schema: {openAPIV3Schema: {type: " +
		"object, properties: {metadata: {type: string}}}}}]}\n" +
		"---\napiVersion: g/v1\nkind: K\nmetadata: {name: a}\n",
	"a: &a [b]\nc: [*a, *a]", "? [a]\n: b", "a: .nan", "a: 1e999", "a: !!binary x", strings.Repeat("[", 20000),
	strings.Repeat("a: {", 2000), strings.Repeat(`{"a":`, 2000),
}

// No input makes the command panic or hang. A refused input is reported as an error.
func FuzzApply(f *testing.F) {
	for _, seed := range inputs {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		for _, command := range []string{"apply", "replace"} {
			dir := t.TempDir()
			write(t, dir, map[string]string{"live.yaml": input})
			for _, args := range [][]string{
				{command, "-f", "-", "--dry-run", "--store", "x.db"},
				{command, "-f", "-", "--live", "live.yaml"},
				{command, "-f", "-", "--dry-run", "--store", "x.db", "--schema", "live.yaml"},
			} {
				status, _, errs := output(process.Env{Stdin: strings.NewReader(input), Dir: dir}, args...)
				require.Equal(t, status != 0, errs != "", "%v: status %d: %s", args, status, errs)
			}
		}
	})
}

// The commands about ownership do not panic or hang either, for any live object and intent: they return an error or a
// documented exit status.
func FuzzOwnership(f *testing.F) {
	const live = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: '1', managedFields: [" +
		"{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {f:data: {f:a: {}}}}]}\n" +
		"data: {a: b}"
	for _, seed := range append(inputs, live) {
		f.Add(seed, live)
		f.Add(live, seed)
	}
	f.Fuzz(func(t *testing.T, input, other string) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"live.yaml": other})
		for _, row := range []struct {
			args    []string
			highest int
			failed  int // the command's exit status for an error
		}{
			{[]string{"plan", "-f", "-", "--live", "live.yaml", "-o", "diff"}, 3, 3},
			{[]string{"conflicts", "-f", "-", "--live", "live.yaml"}, 3, 3},
			{[]string{"conflicts", "-f", "-", "--live", "live.yaml", "--resolve", "share"}, 3, 3},
			{[]string{"handover", "-f", "-", "--live", "live.yaml", "--field", ".data.a", "--field-manager", "a"}, 1, 1},
			{[]string{"blame", "--live", "-"}, 1, 1},
			{[]string{"transfer", "--live", "-", "--from", "a", "--to", "b", "--field", ".data"}, 1, 1},
			{[]string{"adopt", "--live", "-", "--to", "b", "--all"}, 1, 1},
			{[]string{"upgrade", "--live", "-", "--field-manager", "b", "--restarted-at", "--intent", "live.yaml"}, 1, 1},
			{[]string{"downgrade", "--live", "-", "--field-manager", "a"}, 1, 1},
		} {
			status, _, errs := output(process.Env{Stdin: strings.NewReader(input), Dir: dir}, row.args...)
			require.LessOrEqual(t, status, row.highest, "%v", row.args)
			said := strings.Contains("\n"+errs, "\nerror: ")
			require.Equal(t, status == row.failed, said, "%v: status %d: %s", row.args, status, errs)
		}
	})
}
