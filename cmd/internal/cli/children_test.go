//go:build !windows

package cli

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/helm"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// recorder is a program that writes its arguments into a file, and prints the same as helm.
const recorder = `#!/bin/sh
printf '%s\n' "${0##*/}" "$@" >>"$RECORDED"
case "${0##*/} $*" in
"helm upgrade "*) "$RELAY" <"$FOLDER/templates.yaml" >"$FOLDER/applied.yaml" && cat "$FOLDER/release.json" ;;
"helm history "*) cat "$FOLDER/history.json" ;;
"helm get metadata "*) cat "$FOLDER/metadata.json" ;;
"helm get values "*) echo '{}' ;;
"helm get manifest "*) cat "$FOLDER/templates.yaml" ;;
esac
`

// TestMain lets the test binary act as the post-renderer of a recorder.
func TestMain(m *testing.M) {
	if socket := os.Getenv(helm.SocketVariable); socket != "" {
		if helm.Relay(socket, os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	if os.Getenv(commandVariable) != "" {
		runCommand()
	}
	os.Exit(m.Run())
}

// newRecorder returns a folder with programs helm and differ that record their arguments in a file. This helm prints
// the files of the folder.
func newRecorder(t *testing.T) (dir, recorded string) {
	dir = t.TempDir()
	recorded = filepath.Join(dir, "recorded")
	program, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("RECORDED", recorded)
	t.Setenv("FOLDER", dir)
	t.Setenv("RELAY", program)
	for _, name := range []string{"helm", "differ"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(recorder), 0o700))
	}
	return dir, recorded
}

// No child process gets credentials in its arguments, because every user of the machine can read them.
func TestChildArguments(t *testing.T) {
	starting := []string{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		text, _ := os.ReadFile(path)
		isSource := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		if isSource && strings.Contains(string(text), "exec.Command") && !strings.Contains(path, "playground/") {
			starting = append(starting, filepath.Base(path))
		}
		return err
	}))
	require.Equal(t, []string{"ui.go", "helm.go", "diff.go"}, starting, "what others start is not tested")

	dir, recorded := newRecorder(t)
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\ndata: {a: "
	c := newTestCluster(testHost{t}, apiserver.Options{})
	applied := c.send(http.MethodPatch, "/api/v1/namespaces/default/configmaps/c?fieldManager=other", object+"live}\n")
	require.Equal(t, http.StatusCreated, applied.Code, applied.Body)
	flags := listen(testHost{t}, c)
	write(t, dir, map[string]string{
		"c.yaml": object + "next}\n", "policy.yaml": policyHead + "rules: [{decision: give-up}]\n",
		"secret.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {a: s3cr3t}\n",
		"release.json":   `{"name": "r", "namespace": "default", "version": 2}`,
		"history.json":   `[{"revision": 1, "status": "deployed"}]`,
		"metadata.json":  `{"name": "r", "namespace": "default", "revision": 1}`,
		"templates.yaml": object + "next}\n",
	})
	variables := map[string]string{
		"HELM_BIN": filepath.Join(dir, "helm"), "HELM_KUBETOKEN": "s3cr3t", "KUBECONFIG": flags[1],
		"KUBECTL_EXTERNAL_DIFF": filepath.Join(dir, "differ") + " -u",
	}
	env := process.Env{Dir: dir, Getenv: func(name string) string { return variables[name] }}
	place := append(flags, "--token", "s3cr3t")
	for _, row := range []struct {
		starts string
		args   []string
		status int
	}{
		{"helm", []string{"helm", "plan", "r", "chart", "--policy", "policy.yaml"}, 1},
		{"helm", []string{"helm", "upgrade", "r", "chart", "--policy", "policy.yaml", "--yes"}, 0},
		{"helm", []string{"helm", "rollback", "r", "1", "--policy", "policy.yaml", "--yes"}, 0},
		{"differ", append([]string{"plan", "-f", "secret.yaml", "-o", "diff"}, place...), 1},
	} {
		require.NoError(t, os.RemoveAll(recorded))
		status, out, errs := output(env, row.args...)
		require.Equal(t, row.status, status, "%v: %s%s", row.args, out, errs)
		text, err := os.ReadFile(recorded)
		require.NoError(t, err, "%v: %s%s", row.args, out, errs)
		require.Contains(t, string(text), row.starts)
		require.NotContains(t, string(text), "s3cr3t", "%v", row.args)
	}
}

// Nothing is written if Helm would take the arguments for a dry run; the last flag wins. Arguments that would
// override the plan are refused, as are histories that can't be read.
func TestHelmArguments(t *testing.T) {
	dir, recorded := newRecorder(t)
	c := newTestCluster(testHost{t}, apiserver.Options{})
	flags := listen(testHost{t}, c)
	write(t, dir, map[string]string{
		"release.json":   `{"name": "r", "namespace": "default", "version": 1}`,
		"templates.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
	})
	variables := map[string]string{"HELM_BIN": filepath.Join(dir, "helm"), "KUBECONFIG": flags[1]}
	env := process.Env{Dir: dir, Getenv: func(name string) string { return variables[name] }}
	for _, row := range []struct {
		why      string
		args     []string
		isDryRun bool
		says     string
	}{
		{"alone", []string{"--dry-run"}, true, ""},
		{"client", []string{"--dry-run=client"}, true, ""},
		{"server", []string{"--dry-run=server"}, true, ""},
		{"true", []string{"--dry-run=true"}, true, ""},
		{"the last one", []string{"--dry-run=none", "--dry-run"}, true, ""},
		{"none", []string{"--dry-run=none"}, false, ""},
		{"false", []string{"--dry-run=false"}, false, ""},
		{"the last one is none", []string{"--dry-run", "--dry-run=none"}, false, ""},
		{"unknown", []string{"--dry-run=maybe"}, false, `--dry-run: expected none, client or server, got "maybe"`},
		{"empty", []string{"--dry-run="}, false, `--dry-run: expected none, client or server, got ""`},
		{"force", []string{"--force-conflicts"}, false, "--force-conflicts cannot be used"},
		{"replace", []string{"--force-replace=true"}, false, "--force-replace cannot be used"},
		{"no force", []string{"--force=false"}, false, ""},
		{"another post-renderer", []string{"--post-renderer=x"}, false, "--post-renderer cannot be used"},
		{"no boolean", []string{"--atomic=maybe"}, false, `--atomic: expected true or false, got "maybe"`},
	} {
		r, err := newHelmRun(&env, append([]string{"r", "chart"}, row.args...))
		if row.says != "" {
			require.ErrorContains(t, err, row.says, row.why)
			continue
		}
		require.NoError(t, err, row.why)
		require.Equal(t, row.isDryRun, r.dryRun, row.why)
		require.Equal(t, []string{"r", "chart"}, r.given, row.why)
	}
	env.Stdin = strings.NewReader("a: b")
	r, err := newHelmRun(&env, []string{"r", "chart", "-f", "-", "--set", "a=-"})
	require.NoError(t, err)
	require.Equal(t, "a: b", string(r.helm.Stdin), "each rendering needs it")
	env.Stdin = nil
	for _, isDryRun := range []bool{true, false} {
		require.NoError(t, os.RemoveAll(recorded))
		args := []string{"helm", "upgrade", "r", "chart", "--yes", "--dry-run=" + strconv.FormatBool(isDryRun)}
		status, out, errs := output(env, args...)
		require.Equal(t, map[bool]int{true: 1, false: 0}[isDryRun], status, errs)
		require.Contains(t, out, "configmap/c: created")
		text, err := os.ReadFile(recorded)
		require.NoError(t, err)
		require.Equal(t, !isDryRun, strings.Contains(string(text), "--dry-run=none"), string(text))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "release.json"),
		[]byte(`{"name": "r", "namespace": "default", "version": 2}`), 0o600))
	status, out, errs := output(env, "helm", "plan", "r", "chart")
	require.Equal(t, 3, status, out)
	require.Contains(t, errs, "helm history: exit status 1", "there is no history.json")
	require.NotContains(t, out, "created")
}
