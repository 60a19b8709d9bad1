package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

// shellWords returns the arguments that a shell would pass to tenure.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	sh := exec.CommandContext(t.Context(), "sh", "-c", `tenure() { printf '%s\0' "$@"; }; `+line)
	sh.Dir, sh.Env = t.TempDir(), []string{"PATH=/nowhere"} // unquoted names must not run programs
	out, err := sh.Output()
	require.NoError(t, err, line)
	made, err := os.ReadDir(sh.Dir)
	require.NoError(t, err)
	require.Empty(t, made, line)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

const suggestedObject = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"color":"red"}}
  managedFields:
  - {manager: alice, operation: Apply, apiVersion: v1, time: "2020-01-02T03:04:05Z", fieldsType: FieldsV1,
     fieldsV1: {"f:data": {"f:color": {}}}}
  - {manager: kubectl-client-side-apply, operation: Update, apiVersion: v1, time: "2020-01-02T03:04:05Z",
     fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:color": {}, "f:size": {}}, "f:metadata": {"f:annotations": {".": {},
     "f:kubectl.kubernetes.io/last-applied-configuration": {}}}}}
data: {color: red, size: small, nobody: set}
`

// auditedFight returns the audit log of a fight over the object of suggestedObject.
func auditedFight() string {
	var log strings.Builder
	for i := range 10 {
		manager := []string{"alice", "it's bob"}[i%2]
		fmt.Fprintf(&log, `{"kind":"Event","stage":"ResponseComplete","verb":"patch","stageTimestamp":%[1]q,`+
			`"responseObject":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop",`+
			`"resourceVersion":"%[2]d","managedFields":[{"manager":%[3]q,"operation":"Apply","apiVersion":"v1",`+
			`"time":%[1]q,"fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:color":{}}}}]},"data":{"color":%[3]q}}}`+"\n",
			time.Unix(int64(i), 0).UTC().Format(time.RFC3339), i, manager)
	}
	return log.String()
}

// Every suggested command can be run as it is printed. It acts on the same place as the command that suggested it:
// also in another context, cluster or server than the current one, as another user, in a store or in files, with any
// names.
func TestSuggestions(t *testing.T) {
	dir := t.TempDir()
	c := newTestCluster(testHost{t}, apiserver.Options{})
	isImpersonated := false
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isImpersonated && (r.Header.Get("Impersonate-User") != "ann" || len(r.Header["Impersonate-Group"]) != 2) {
			http.Error(w, "not as somebody else", http.StatusTeapot)
			return
		}
		r.Header.Del("Impersonate-User")
		r.Header.Del("Impersonate-Group")
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	// The current context can't be used.
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: none\nusers: [{name: it's, user: {}}]\n" +
		"clusters: [{name: none, cluster: {server: 'http://127.0.0.1:1'}}, {name: a b, cluster: {server: '" + listener.URL +
		"'}}]\ncontexts: [{name: none, context: {cluster: none}}, {name: it, context: {cluster: none, user: none}}]\n"
	write(t, dir, map[string]string{
		"settings.yaml": suggestedObject, "live 'it.yaml": suggestedObject, "kube 'config": kubeconfig, "config": kubeconfig,
		"mine.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n" +
			"data: {color: red}\n",
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", "audit.log": auditedFight(),
	})
	run := func(args []string) (int, string) {
		status, out, errs := output(process.Env{Dir: dir}, args...)
		return status, out + errs
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "config"))
	inStore := []string{"--store", "it's a $tore.db"}
	inCluster := []string{"--kubeconfig", filepath.Join(dir, "kube 'config"), "--context", "it", "--cluster", "a b",
		"--user", "it's", "--as", "ann", "--as-group", "a b", "--as-group", "c"}
	for _, row := range []struct{ file, method, path string }{ // an update creates managed fields
		{"namespace.yaml", http.MethodPost, ""}, {"settings.yaml", http.MethodPost, "/shop/configmaps"},
		{"settings.yaml", http.MethodPut, "/shop/configmaps/settings"},
	} {
		status, out := run(append([]string{"replace", "-f", row.file}, inStore...))
		require.Zero(t, status, out)
		text, err := os.ReadFile(filepath.Join(dir, row.file))
		require.NoError(t, err)
		body, err := yaml.YAMLToJSON(text)
		require.NoError(t, err)
		path := "/api/v1/namespaces" + row.path + "?fieldManager=kubectl"
		require.Less(t, c.send(row.method, path, string(body)).Code, http.StatusBadRequest)
	}
	for _, row := range []struct {
		name     string
		at       []string
		commands [][]string
	}{
		{"a store", inStore, [][]string{{"report", "-A"}, {"report", "-A", "-o", "json"}, {"report", "-n", "shop"}}},
		{"a context, as somebody", inCluster, [][]string{{"report", "-A"}, {"report", "configmaps", "-n", "shop"},
			{"watch", "--audit-log", "audit.log"}, {"watch", "--audit-log", "audit.log", "-o", "json"}}},
		{"a server", []string{"--server", listener.URL, "--token", "secret"}, [][]string{{"report", "-n", "shop"}}},
		{"files", []string{"--live", "live 'it.yaml", "--live", "namespace.yaml"}, [][]string{{"report"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			isImpersonated = row.at[0] == "--kubeconfig"
			for _, command := range row.commands {
				_, out := run(append(command, row.at...))
				lines := suggestedIn(out)
				require.NotEmpty(t, lines, out)
				for _, line := range lines {
					require.NotContains(t, line, " secret")
					words := shellWords(t, strings.ReplaceAll(line, "MANIFEST", "mine.yaml"))
					if words[0] != "blame" {
						words = append(words, "--dry-run")
					}
					status, ran := run(words)
					if strings.Contains(line, "it'\\''s bob") {
						require.Contains(t, ran, "it's bob", "who owns nothing here")
						continue
					}
					require.Zero(t, status, "%s\n%s", line, ran)
				}
			}
		})
	}
}

// suggestedIn returns the suggested commands in an output, as a shell would pass them.
func suggestedIn(out string) (lines []string) {
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var value any
		if decoder.Decode(&value) != nil {
			break
		}
		lines = append(lines, argumentsIn(value)...)
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if _, command, ok := strings.Cut(line, ": tenure "); ok {
			line = "tenure " + command
		}
		if strings.HasPrefix(line, "tenure ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// argumentsIn returns the suggested commands in a JSON value.
func argumentsIn(value any) (lines []string) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			lines = append(lines, argumentsIn(one)...)
		}
	case map[string]any:
		for name, one := range value {
			args, ok := one.([]any)
			if name != "arguments" || !ok {
				lines = append(lines, argumentsIn(one)...)
				continue
			}
			line := "tenure"
			for _, arg := range args {
				line += " " + printable.ShellQuoted(arg.(string))
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// A suggested command gets each flag that selects a place. No command has other flags for a place.
func TestSuggestedFlags(t *testing.T) {
	var f placeFlags
	env := &process.Env{Server: server.New()}
	cmd := &cobra.Command{}
	f.add(env, cmd)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		value := "x y"
		if flag.Name == "v" { // the log level
			return
		}
		if flag.NoOptDefVal != "" {
			value = "true"
		}
		require.NoError(t, cmd.Flags().Set(flag.Name, value))
	})
	suggest := f.suggest()
	look := advice.Inspect(advice.Objects{Kinds: []string{"x"}, Name: "y"}, "")
	words := shellWords(t, suggest.Line(suggest.Arguments(look)))
	again := &cobra.Command{}
	var g placeFlags
	g.add(env, again)
	require.NoError(t, again.ParseFlags(words))
	again.Flags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "namespace", "cache-dir", "request-timeout", "disable-compression", "help", "v":
			require.False(t, flag.Changed, flag.Name)
		case "token":
			require.Equal(t, "TOKEN", flag.Value.String())
		default:
			require.Equal(t, cmd.Flags().Lookup(flag.Name).Value.String(), flag.Value.String(), flag.Name)
		}
	})
}

// All suggestions are made in one package, and all their command lines in one file. No library names a flag.
func TestOneMaker(t *testing.T) {
	made, verbs := regexp.MustCompile(`(^|[^]])advice\.Suggestion\{`), regexp.MustCompile(`case advice\.\w+:`)
	flags := regexp.MustCompile("[\"` ]--[a-z]")
	for _, root := range []string{"ownership", "conflicts", "fieldmanager", "upgrade", "cmd/internal"} {
		err := filepath.WalkDir(filepath.Join(projectRoot, root), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			for line := range strings.Lines(string(data)) {
				code, _, _ := strings.Cut(line, "//")
				require.NotRegexp(t, made, code, path)
				if root != "cmd/internal" {
					require.NotRegexp(t, flags, code, path)
				}
				if filepath.Base(path) != "suggest.go" {
					require.NotRegexp(t, verbs, code, path)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
}
