package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// confirmation is a terminal whose user says yes, after something else has happened.
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

// TestRaces changes an object while a command asks whether to write what it showed. Nothing is written to an object, or a
// version of it, that was not shown.
func TestRaces(t *testing.T) {
	plan := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: mine}\n"
	for _, row := range []struct {
		name     string
		manifest string
		args     []string
		exists   bool // before the command
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
				s := newRaced(t)
				if row.exists {
					s.send("PATCH", racedPath+"/c?fieldManager=alice", racedOld)
				}
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "m.yaml"), []byte(row.manifest), 0o600))
				var after string
				terminal := &confirmation{meanwhile: func() {
					switch {
					case !row.exists:
						s.send("POST", racedPath, racedNew)
					case isOther:
						s.send("DELETE", racedPath+"/c", "")
						s.send("PATCH", racedPath+"/c?fieldManager=alice", racedOld) // the same, but for its UID
					default:
						s.send("PATCH", racedPath+"/c?fieldManager=alice", strings.ReplaceAll(racedNew, "new", "changed"))
					}
					after = s.send("GET", racedPath+"/c", "")
				}}
				var out strings.Builder
				status := runMain(process.Env{
					Dir: s.dir, Stdin: terminal, Stdout: &out, Stderr: &out,
					Terminal: func(any) bool { return true }, Getenv: func(string) string { return "" },
				}, append(row.args, "--kubeconfig", filepath.Join(s.dir, "kubeconfig")))
				require.True(t, terminal.answered, "it asked nothing:\n%s", out.String())
				require.NotZero(t, status, out.String())
				require.Equal(t, after, s.send("GET", racedPath+"/c", ""), out.String())
			})
		}
	}
}

// raced is a server behind a listener.
type raced struct {
	t      *testing.T
	dir    string
	server *apiserver.Server
}

func newRaced(t *testing.T) *raced { return newRacedWith(t, apiserver.Options{Token: testToken}) }

func newRacedWith(t *testing.T, options apiserver.Options) *raced {
	server, err := apiserver.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s := &raced{t, t.TempDir(), server}
	s.kubeconfigOf(testToken)
	return s
}

// kubeconfigOf writes the kubeconfig of the user of a token, and returns its name.
func (s *raced) kubeconfigOf(token string) string {
	// clientcmd sends no token to a server without TLS.
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		s.server.ServeHTTP(w, r)
	}))
	s.t.Cleanup(listener.Close)
	name := "kubeconfig"
	if token != testToken {
		name += "-" + token
	}
	s.write(name, kubeconfig(listener))
	return name
}

func (s *raced) write(name, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// send sends a request, and returns the body of the response.
func (s *raced) send(method, path, body string) string {
	s.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	require.Less(s.t, w.Code, 300, w.Body.String())
	return w.Body.String()
}
