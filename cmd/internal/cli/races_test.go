package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// confirmation is a terminal whose user answers yes, after the test has changed something else.
type confirmation struct {
	meanwhile func()
	answered  bool
}

func (c *confirmation) Read(p []byte) (int, error) {
	if !c.answered {
		c.answered = true
		c.meanwhile()
	}
	return copy(p, "y\n"), nil
}

const (
	racedPath = "/api/v1/namespaces/default/configmaps"
	racedOld  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"set":"x"}},"data":{"a":"old"}}`
	racedNew  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"new"}}`
)

// TestRaces changes an object while a command waits for confirmation. The command must not write to another object,
// or another version of the object, than the one it showed.
func TestRaces(t *testing.T) {
	plan := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: mine}\n"
	for _, row := range []struct {
		name     string
		manifest string
		args     []string
		exists   bool // before the command runs
	}{
		{"plan --prune --apply", strings.ReplaceAll(plan, "name: c", "name: other, labels: {set: x}"),
			[]string{"plan", "--prune", "-l", "set=x", "--apply", "-f", "m.yaml", "--field-manager", "alice"}, true},
		{"plan --apply", plan,
			[]string{"plan", "--apply", "-f", "m.yaml", "--field-manager", "bob", "--force-conflicts"}, true},
		{"plan --apply of a new object", plan,
			[]string{"plan", "--apply", "-f", "m.yaml", "--field-manager", "bob", "--force-conflicts"}, false},
		{"conflicts --resolve", plan,
			[]string{"conflicts", "--resolve", "force", "-f", "m.yaml", "--field-manager", "bob"}, true},
		{"handover", plan, []string{"handover", "-f", "m.yaml", "--field-manager", "alice", "--field", ".data.a"}, true},
		{"transfer", plan, []string{"transfer", "configmap/c", "--from", "alice", "--to", "bob", "--all"}, true},
		{"rename", plan, []string{"rename", "configmap/c", "--from", "alice", "--to", "bob"}, true},
		{"drop", plan, []string{"drop", "configmap/c", "--from", "alice"}, true},
		{"downgrade", plan, []string{"downgrade", "configmap/c", "--field-manager", "alice"}, true},
	} {
		for _, isOther := range []bool{false, true} {
			name := row.name + ", changed"
			if isOther {
				name = row.name + ", created anew"
			}
			if isOther && !row.exists {
				continue
			}
			t.Run(name, func(t *testing.T) {
				s := newRaced(t, apiserver.Options{})
				if row.exists {
					s.send("PATCH", racedPath+"/c?fieldManager=alice", racedOld)
				}
				write(t, s.dir, map[string]string{"m.yaml": row.manifest})
				var after string
				terminal := &confirmation{meanwhile: func() {
					switch {
					case !row.exists:
						s.send("POST", racedPath, racedNew)
					case isOther:
						s.send("DELETE", racedPath+"/c", "")
						s.send("PATCH", racedPath+"/c?fieldManager=alice", racedOld) // the same object with another UID
					default:
						s.send("PATCH", racedPath+"/c?fieldManager=alice", strings.ReplaceAll(racedNew, "new", "changed"))
					}
					after = s.send("GET", racedPath+"/c", "")
				}}
				env := process.Env{Dir: s.dir, Stdin: terminal, Terminal: func(any) bool { return true }}
				status, out, errs := output(env, append(row.args, s.flags...)...)
				require.True(t, terminal.answered, "it asked nothing:\n%s%s", out, errs)
				require.NotZero(t, status, out)
				require.Equal(t, after, s.send("GET", racedPath+"/c", ""), errs)
			})
		}
	}
}

// TestPlanOfChangingObject changes an object before each dry run. A plan is made again for the new object, but only a
// few times.
func TestPlanOfChangingObject(t *testing.T) {
	c, dir := newTestCluster(testHost{t}, apiserver.Options{}), t.TempDir()
	flags := listen(testHost{t}, c)
	c.send("PATCH", racedPath+"/c?fieldManager=alice", racedOld)
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {b: mine}\n"
	write(t, dir, map[string]string{"m.yaml": manifest})
	changes := 0
	c.before = func() {
		changes++
		c.send("PATCH", racedPath+"/c?fieldManager=loop&force=true",
			strings.Replace(racedNew, `"a":"new"`, fmt.Sprintf(`"loop":"%d"`, changes), 1))
	}
	status, out, errs := output(process.Env{Dir: dir}, append([]string{"plan", "-f", "m.yaml"}, flags...)...)
	require.Equal(t, statusChanges, status)
	require.Equal(t, "warning: configmap/c is being changed by others: the plan may contain their changes\n", errs)
	require.Contains(t, out, ".data.b")
	require.Equal(t, place.Attempts, changes)
}

// raced is a cluster, and a folder in which commands run.
type raced struct {
	testCluster
	t     *testing.T
	dir   string
	flags []string // to access the cluster
}

func newRaced(t *testing.T, options apiserver.Options) *raced {
	s := &raced{testCluster: *newTestCluster(testHost{t}, options), t: t, dir: t.TempDir()}
	s.flags = s.flagsOf(testToken)
	return s
}

// flagsOf returns flags to access the cluster as the user of a token.
func (s *raced) flagsOf(token string) []string {
	// clientcmd sends no token to a server without TLS.
	return listen(testHost{s.t}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		s.server.ServeHTTP(w, r)
	}))
}

// send sends a request, and returns the body of the response.
func (s *raced) send(method, path, body string) string {
	s.t.Helper()
	w := s.testCluster.send(method, path, body)
	require.Less(s.t, w.Code, 300, w.Body.String())
	return w.Body.String()
}

// TestHoles runs commands as users with few permissions. The output must name what could not be read, and the status
// must not be 0.
func TestHoles(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	s := newRaced(t, apiserver.Options{
		Store: store, Authorizer: authorizer,
		Authenticator: bearertoken.New(tokenfile.New(map[string]*user.DefaultInfo{
			"nobody": {Name: "nobody"}, "reader": {Name: "reader"},
		})),
	})
	s.send("PATCH", racedPath+"/c?fieldManager=alice", racedOld)
	const grants = "/apis/rbac.authorization.k8s.io/v1/"
	s.send("POST", grants+"clusterroles", `{"metadata":{"name":"r"},"rules":[{"verbs":["get","list","watch"],`+
		`"apiGroups":[""],"resources":["configmaps","namespaces"]}]}`)
	s.send("POST", grants+"clusterrolebindings", `{"metadata":{"name":"r"},"roleRef":{"apiGroup":`+
		`"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"reader"}]}`)
	write(t, s.dir, map[string]string{
		"m.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {set: x}}\ndata: {a: old}\n",
		"changed.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {b: mine}\n",
		"new.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {b: mine}\n",
		"conflict.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: mine}\n",
	})
	const unasked = "note: you lack the permission to apply 1 object: planned without the server"
	for _, row := range []struct {
		name, user, args string
		status           int
		says             []string
	}{
		{"watch nothing", "nobody", "watch -A --for 300ms", statusIncomplete, []string{"may not list them", "configmaps"}},
		{"watch something", "reader", "watch -A --for 300ms", statusIncomplete, []string{"may not list them", "secrets"}},
		{"watch what is asked for", "nobody", "watch configmaps --for 300ms", statusFailed, []string{"forbidden"}},
		{"report on nothing", "nobody", "report -A", statusIncomplete, []string{"may not list them", "configmaps"}},
		{"report on something", "reader", "report -A", statusIncomplete, []string{"may not list them", "secrets"}},
		{"report in JSON", "reader", "report -A -o json", statusIncomplete, []string{"may not list them", "secrets"}},
		{"report on what is asked for", "nobody", "report secrets -A", 1, []string{"forbidden"}},
		{"plan that changes nothing", "reader", "plan -f m.yaml --field-manager alice", 0, []string{"unchanged"}},
		{"plan that changes", "reader", "plan -f changed.yaml --field-manager bob", statusIncomplete,
			[]string{unasked, "added", ".data.b"}},
		{"plan of a new object", "reader", "plan -f new.yaml --field-manager bob", statusIncomplete,
			[]string{unasked, "created"}},
		{"plan in conflict", "reader", "plan -f conflict.yaml --field-manager bob", statusConflict, []string{"alice"}},
		{"plan that reads nothing", "nobody", "plan -f m.yaml --field-manager bob", statusFailed, []string{"forbidden"}},
		{"blame", "nobody", "blame configmap/c", 1, []string{"forbidden"}},
		{"an administrator", testToken, "report -A", 0, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, out, errs := output(process.Env{Dir: s.dir}, append(strings.Fields(row.args), s.flagsOf(row.user)...)...)
			out += errs
			require.Equal(t, row.status, status, out)
			for _, text := range row.says {
				require.Contains(t, out, text)
			}
			require.NotContains(t, out, "deprecated", "nobody asked for Endpoints")
			if row.status == 0 {
				require.NotContains(t, out, "note: ")
			}
		})
	}
}
