package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

const secretNumber = "8675309123"

// unreadable has contents of files that no command accepts. Errors must not quote them.
var unreadable = map[string]string{
	"a misspelled kind":                  "apiVersion: v1\nKind: Secret\nmetadata: {name: s}\ndata: {password: m4rk3r}\n",
	"no kind":                            "metadata: {name: s}\nstringData: {password: m4rk3r}\n",
	"no apiVersion":                      "kind: Secret\nmetadata: {name: s}\nstringData: {password: m4rk3r}\n",
	"a kind of another type":             "apiVersion: v1\nkind: " + secretNumber + "\nmetadata: {name: s, uid: m4rk3r}\n",
	"an apiVersion that is none":         "apiVersion: v1/m4rk3r/x\nkind: Secret\nstringData: {password: m4rk3r}\n",
	"credentials":                        `{"auths": {"ghcr.io": {"auth": "m4rk3r", "number": ` + secretNumber + `}}}`,
	"a list of an object without a kind": "apiVersion: v1\nkind: List\nitems:\n- {metadata: {name: s}, x: m4rk3r}\n",
	"a list of texts":                    "apiVersion: v1\nkind: List\nitems: [m4rk3r, " + secretNumber + "]\n",
	"a text for a list":                  "apiVersion: v1\nkind: List\nitems: m4rk3r\n",
	"a text":                             "m4rk3r\n",
	"texts":                              "- m4rk3r\n- " + secretNumber + "\n",
	"a number":                           secretNumber,
	"metadata of another type":           "apiVersion: v1\nkind: Secret\nmetadata: [m4rk3r]\n",
	"a name of another type":             "apiVersion: v1\nkind: Secret\nmetadata: {name: " + secretNumber + "}\n",
	"a time that is none":                "apiVersion: v1\nkind: Secret\nmetadata: {name: s, creationTimestamp: m4rk3r}\n",
	"an open quote":                      "apiVersion: v1\nkind: Secret\nstringData:\n  password: \"m4rk3r\n  x: y\n",
	"an open bracket":                    "apiVersion: v1\ndata: [m4rk3r\n",
	"an alias":                           "apiVersion: v1\nkind: Secret\ndata: *m4rk3r\n",
	"an alias of itself":                 "apiVersion: v1\nkind: Secret\ndata: &m4rk3r {a: *m4rk3r}\n",
	"a directive":                        "%m4rk3r x\n---\na: b\n",
	"a tag":                              "apiVersion: v1\nkind: Secret\ndata: {a: !!float m4rk3r}\n",
	"a tag of somebody":                  "apiVersion: v1\nkind: Secret\ndata: {a: !!m4rk3r x, b: !m4rk3r y}\n",
	"a key that is a map":                "apiVersion: v1\nkind: Secret\n? {a: m4rk3r}\n: b\n",
	"a separator with text":              "a: b\n--- m4rk3r\nc: d\n",
	"a merge of a text":                  "apiVersion: v1\nkind: Secret\n<<: m4rk3r\n",
	"a tab":                              "apiVersion: v1\nkind: Secret\ndata:\n\tm4rk3r: x\n",
	"an escape":                          "apiVersion: v1\nkind: Secret\ndata: {a: \"m4rk3r\\q\"}\n",
	"JSON that is cut":                   `{"apiVersion": "v1", "kind": "Secret", "data": {"a": "m4rk3r`,
	"JSON without quotes":                `{"apiVersion": "v1", "kind": "Secret", "data": {"a": m4rk3r}}`,
	"the second of JSON":                 `{"kind": "x"} {"data": "m4rk3r"}`,
	"a kubeconfig":                       "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: [m4rk3r]}}]\n",
	"a kubeconfig with a certificate": "apiVersion: v1\nkind: Config\ncurrent-context: a\n" +
		"contexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', " +
		"certificate-authority-data: bTRyazNy}}]\nusers: [{name: a, user: {client-key-data: m4rk3r!}}]\n",
	"an event":           `{"kind": "Event", "stageTimestamp": "m4rk3r"}`,
	"a policy":           policyHead + "rules: [{decision: force, fields: " + secretNumber + ", labelSelector: m4rk3r}]\n",
	"a policy's example": policyHead + "examples: [{object: {metadata: {creationTimestamp: m4rk3r}}}]\n",
	"OpenAPI":            `{"openapi": "3.0", "components": {"schemas": {"a": "m4rk3r", "b": {"maxLength": "m4rk3r"}}}}`,
	"a definition": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n" +
		"spec: {versions: [{name: v1, schema: {openAPIV3Schema: m4rk3r}}], names: m4rk3r}\n",
	"a trace":             `{"steps": [{"now": "m4rk3r", "request": {"body": "m4rk3r"}}]}`,
	"a scenario":          "-- apply alice --\nkind: Secret\ndata: [m4rk3r\n",
	"a scenario's schema": "-- schema --\nm4rk3r: [\n-- apply alice --\na: m4rk3r\n",
}

// readers has a command line for each flag that takes an input file, written as BAD.
var readers = map[string][]string{
	"filename": {"plan -f BAD --live live.yaml --field-manager m", "apply -f BAD --store s.db",
		"replace -f BAD --store s.db", "conflicts -f BAD --live live.yaml --field-manager m",
		"handover -f BAD --live live.yaml --field .data --field-manager m", "apply -R -f folder --store s.db"},
	"kustomize": {"plan -k base --live live.yaml --field-manager m", "plan -k patched --live live.yaml --field-manager m",
		"plan -k generated --live live.yaml --field-manager m", "plan -k folder --live live.yaml --field-manager m"},
	"live":   {"blame --live BAD", "apply -f live.yaml --live BAD", "release --live BAD --from m --all"},
	"schema": {"blame --live live.yaml --schema BAD", "blame --live live.yaml --schema folder"},
	"policy": {"policy test BAD", "plan -f live.yaml --live live.yaml --field-manager m --policy BAD",
		"helm post-render --policy BAD"},
	"intent":            {"upgrade --live live.yaml --field-manager m --intent BAD --dry-run"},
	"audit-log":         {"watch --audit-log BAD"},
	"audit-policy-file": {"serve --store new.db --listen 127.0.0.1:0 --audit-log-path - --audit-policy-file BAD"},
	"crd":               {"serve --store new.db --listen 127.0.0.1:0 --kubeconfig kc --crd BAD"},
	"kubeconfig": {"serve --store new.db --listen 127.0.0.1:0 --kubeconfig BAD",
		"blame configmaps --kubeconfig BAD"},
	"store": {"blame all -A --store BAD", "apply -f live.yaml --store BAD"},
	"":      {"test BAD", "replay BAD", "extract --live - --manager m"},
}

// written lists flags for files that commands only write.
var written = []string{"audit-log-path", "dir"}

// No error quotes the content of a file that could not be read.
func TestUnreadableFiles(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(flag)
			if name == "FILE" || name == "DIR" || name == "FOLDER" {
				require.True(t, readers[flag.Name] != nil || strings.Contains(strings.Join(written, " "), flag.Name),
					"%s --%s: what it prints of a file is not tested", cmd.CommandPath(), flag.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(Root(&process.Env{Server: server.New()}))
	ended, end := context.WithCancel(t.Context())
	end() // stop any server
	for why, text := range unreadable {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			for folder, kustomization := range map[string]string{"base": "resources: [BAD.yaml]\n", "folder": text,
				"patched":   "resources: [live.yaml]\npatches: [{path: BAD.yaml}]\n",
				"generated": "configMapGenerator: [{name: a, envs: [BAD.yaml]}]\n"} {
				require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
				write(t, filepath.Join(dir, folder), map[string]string{"kustomization.yaml": kustomization, "BAD.yaml": text,
					"live.yaml": suggestedObject})
			}
			for flag, lines := range readers {
				if flag == "kustomize" && why == "an alias of itself" {
					continue // kustomize would recurse forever
				}
				for _, line := range lines {
					if strings.HasSuffix(line, "--kubeconfig BAD") && !strings.Contains(why, "a kubeconfig") {
						continue // too slow: a server starts first
					}
					write(t, dir, map[string]string{"BAD": text, "live.yaml": suggestedObject})
					env := process.Env{Dir: dir, Context: ended, Stdin: strings.NewReader(text)}
					_, out, errs := output(env, strings.Fields(line)...)
					if strings.HasPrefix(line, "blame") || strings.HasPrefix(line, "extract") {
						out = "" // the text is a readable object
					}
					require.NotContains(t, out+errs, "m4rk3r", line)
					require.NotContains(t, out+errs, secretNumber, line)
				}
			}
		})
	}
}

// An error about a file has a line and a column.
func TestPositionOfUnreadable(t *testing.T) {
	dir := t.TempDir()
	const good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, row := range []struct{ why, text, want string }{
		{"a document that is no YAML", good + "---\n" + good + "data: [\n", `document 2, line [89]: did not find`},
		{"two documents", "Kind: a\n---\n" + good + "---\n# comment\nKind: b\n",
			`document 1, line 1: expected.*document 3, line 7: expected an object with apiVersion and kind`},
		{"a separator first", "---\nKind: a\n", `document 1, line 2: expected`},
		{"JSON", "{\"kind\": \"A\"}\n{\"Kind\": \"B\"}\n", `document 2, line 2: expected`},
		{"an item", "apiVersion: v1\nkind: List\nitems:\n- {}\n", `\.items\[0\]\.kind: missing`},
	} {
		write(t, dir, map[string]string{"a.yaml": row.text, "live.yaml": suggestedObject})
		_, _, errs := output(process.Env{Dir: dir}, "plan", "-f", "a.yaml", "--live", "live.yaml", "--field-manager", "m")
		require.Regexp(t, "a.yaml.*"+row.want, strings.ReplaceAll(errs, "\n", " "), row.why)
		_, _, errs = output(process.Env{Dir: dir, Stdin: strings.NewReader(row.text)}, "plan", "-f", "-", "--live",
			"live.yaml", "--field-manager", "m")
		require.Regexp(t, "standard input.*"+row.want, strings.ReplaceAll(errs, "\n", " "), row.why)
	}
}

// With TENURE_ROOT, a kustomization reads no file outside of that folder, not even through symbolic links.
func TestKustomizationInsideRoot(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"a.yaml": suggestedObject, "kustomization.yaml": "resources: [a.yaml]\n"})
	up, err := filepath.Rel(filepath.Join(dir, "k"), outside)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "k"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(outside, "a.yaml"), filepath.Join(dir, "k", "link.yaml")))
	require.NoError(t, os.Symlink("../live.yaml", filepath.Join(dir, "k", "inside.yaml")))
	write(t, dir, map[string]string{"live.yaml": suggestedObject, "next.yaml": suggestedObject})
	write(t, filepath.Join(dir, "k"), map[string]string{"own.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: settings, namespace: shop}\ndata: {color: red}\n"})
	for _, row := range []struct{ why, kustomization, want string }{
		{"a link out", "resources: [link.yaml]", "k/link.yaml: not read, because it leads out of "},
		{"a base outside", "resources: [" + up + "]", "not read, because it leads out of "},
		{"a patch outside", "resources: [own.yaml]\npatches: [{path: link.yaml}]", "k/link.yaml: not read"},
		{"its own file", "resources: [own.yaml]", ""},
	} {
		write(t, filepath.Join(dir, "k"), map[string]string{"kustomization.yaml": row.kustomization})
		env := process.Env{Dir: dir, Getenv: func(name string) string { return map[string]string{"TENURE_ROOT": dir}[name] }}
		status, _, errs := output(env, "plan", "-k", "k", "--live", "live.yaml", "--field-manager", "alice")
		require.Equal(t, row.want != "", status == 3, "%s: %s", row.why, errs)
		require.Contains(t, errs, row.want, row.why)
	}
}
