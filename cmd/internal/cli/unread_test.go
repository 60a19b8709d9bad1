package cli

import (
	"path/filepath"
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
)

// TestHoles runs commands as users of few rights. What could not be read is named, and the status is not 0.
func TestHoles(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	s := newRacedWith(t, apiserver.Options{
		Token: testToken, Store: store, Authorizer: authorizer,
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
	s.write("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {set: x}}\ndata: {a: old}\n")
	s.write("changed.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {b: mine}\n")
	s.write("new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {b: mine}\n")
	s.write("conflict.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: mine}\n")
	const unasked = "note: you may not apply 1 object: planned without the server"
	for _, row := range []struct {
		name, user, args string
		status           int
		says             []string
	}{
		{"watch nothing", "nobody", "watch -A --for 300ms", statusHole, []string{"may not list them", "configmaps"}},
		{"watch something", "reader", "watch -A --for 300ms", statusHole, []string{"may not list them", "secrets"}},
		{"watch what is asked for", "nobody", "watch configmaps --for 300ms", statusFailed, []string{"forbidden"}},
		{"report on nothing", "nobody", "report -A", statusHole, []string{"may not list them", "configmaps"}},
		{"report on something", "reader", "report -A", statusHole, []string{"may not list them", "secrets"}},
		{"report in JSON", "reader", "report -A -o json", statusHole, []string{"may not list them", "secrets"}},
		{"report on what is asked for", "nobody", "report secrets -A", 1, []string{"forbidden"}},
		{"plan that changes nothing", "reader", "plan -f m.yaml --field-manager alice", 0, []string{"unchanged"}},
		{"plan that changes", "reader", "plan -f changed.yaml --field-manager bob", statusHole,
			[]string{unasked, "added", ".data.b"}},
		{"plan of a new object", "reader", "plan -f new.yaml --field-manager bob", statusHole, []string{unasked, "created"}},
		{"plan in conflict", "reader", "plan -f conflict.yaml --field-manager bob", statusConflict, []string{"alice"}},
		{"plan that reads nothing", "nobody", "plan -f m.yaml --field-manager bob", statusFailed, []string{"forbidden"}},
		{"blame", "nobody", "blame configmap/c", 1, []string{"forbidden"}},
		{"an administrator", testToken, "report -A", 0, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			status := runMain(process.Env{
				Dir: s.dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
				Terminal: func(any) bool { return false }, Getenv: func(string) string { return "" },
			}, append(strings.Fields(row.args), "--kubeconfig", filepath.Join(s.dir, s.kubeconfigOf(row.user))))
			require.Equal(t, row.status, status, out.String())
			for _, text := range row.says {
				require.Contains(t, out.String(), text)
			}
			require.NotContains(t, out.String(), "deprecated", "nobody asked for Endpoints")
			if row.status == 0 {
				require.NotContains(t, out.String(), "note: ")
			}
		})
	}
}
