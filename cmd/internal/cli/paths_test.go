package cli

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// oddNames are names of fields and items that look like path syntax.
var oddNames = []string{
	"", "a", "b", ".", "a.b", "b.a", "a.b.a", ".dockerconfigjson", "example.com/a.b", "[", "]", "a[b]", `["a"]`, `"`, `a"b`, `\`, `\*`, `\\`,
	"*", "a*", "=", "a=b", ",", "0", "true", " ", "a b", "ä", "日本", "😀", "\n", "\x00", "\x1b[2J", "\u202e", "\U000e0041", "\u00a0", "'", "$a",
}

// pathReaders has command lines for every flag and file that takes a path, written as PATH, and what they must print.
var pathReaders = map[string][]struct{ line, want string }{
	"field": {
		{"transfer --live live.json --from bob --to carol --dry-run --field PATH", "    PATH\n"},
		{"release --live live.json --from bob --dry-run --field PATH", "    PATH\n"},
		{"extract --live live.json --manager bob --field PATH", "name: web\n"},
		{"policy permit permits.yaml --manager bob --field PATH", "bob may own "},
		{"adopt --live live.json --to carol --dry-run --field PATH", `"carol" (Apply) gains`},
		{"handover -f bob.json --live applied.json --field-manager bob --dry-run --field PATH", "PATH"},
		{"conflicts -f alice.json --live live.json --field-manager alice --resolve force --others give-up --field PATH", "PATH"},
	},
	"also": {{"upgrade --live live.json --field-manager carol --dry-run --details --also PATH", "    PATH\n"}},
}

// TestPathsAreAccepted checks that every flag and file that takes a path accepts the paths that blame, plan,
// conflicts and a server's Status print, and that the path names the same field.
func TestPathsAreAccepted(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(flag); name == "PATH" {
				require.True(t, slices.ContainsFunc(pathReaders[flag.Name], func(r struct{ line, want string }) bool {
					return strings.HasPrefix("tenure "+r.line, cmd.CommandPath()+" ")
				}), "%s --%s is not tested", cmd.CommandPath(), flag.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(Root(&process.Env{Server: server.New()}))

	dir := t.TempDir()
	env := process.Env{Dir: dir}
	write(t, dir, map[string]string{"alice.json": oddObject(t, "1"), "bob.json": oddObject(t, "2"),
		"base.json": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"1",` +
			`"managedFields":[{"manager":"x","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{}}]}}`})
	applied := mustOutput(t, env, 0, "apply --live base.json -f bob.json --field-manager bob -o json")
	write(t, dir, map[string]string{"applied.json": applied,
		"live.json": strings.ReplaceAll(applied, `"operation": "Apply"`, `"operation": "Update"`)})

	lines := map[string]string{
		"blame":            "blame --live live.json -o json",
		"conflicts":        "conflicts -f alice.json --live live.json --field-manager alice -o json",
		"conflicts status": "conflicts -f alice.json --live live.json --field-manager alice -o status",
		"plan":             "plan -f alice.json --live live.json --field-manager alice -o json",
		"changes":          "plan -f alice.json --live live.json --field-manager alice --force-conflicts -o json",
	}
	texts := map[string]map[string]bool{}
	for from, line := range lines {
		_, printed, errs := output(env, strings.Fields(line)...)
		require.NotContains(t, errs, "error", from)
		texts[from] = textsOfPaths(t, printed)
		require.Greater(t, len(texts[from]), 3*len(oddNames), from)
	}
	inConflict := &fieldpath.Set{}
	for text := range texts["conflicts"] {
		path, err := fieldpath.ParsePath(text)
		require.NoError(t, err)
		inConflict = inConflict.Union(fieldpath.NewSet(path))
	}
	r := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for _, from := range slices.Sorted(maps.Keys(texts)) {
		for _, text := range slices.Sorted(maps.Keys(texts[from])) {
			path, err := fieldpath.ParsePath(text)
			if from == "conflicts status" {
				found := inConflict.Find(text)
				require.Len(t, found, 1, text)
				path, err = found[0], nil
			}
			require.NoError(t, err, from)
			if inConflict.Has(path) && r.IntN(6) == 0 {
				tried++
				requireAccepted(t, env, text, path)
			}
		}
	}
	require.Greater(t, tried, 80)
}

// requireAccepted passes a path to every flag and file that takes one.
func requireAccepted(t *testing.T, env process.Env, text string, path fieldpath.Path) {
	t.Helper()
	for flag, readers := range pathReaders {
		for _, reader := range readers {
			args := strings.Fields(reader.line)
			args[slices.Index(args, "PATH")] = text
			_ = os.Remove(filepath.Join(env.Dir, "permits.yaml")) // each permit adds to it
			status, out, errs := output(env, args...)
			require.Equal(t, 0, status, "%q: %s", args, errs)
			require.Contains(t, out+errs, strings.ReplaceAll(reader.want, "PATH", path.String()), "--%s of %q", flag, args)
			if args[0] == "conflicts" {
				require.Equal(t, []string{path.String()}, forced(t, errs), "%q", args)
			}
		}
	}
	rules := map[string]any{
		"apiVersion": "tenure-ssa.github.io/v1alpha1", "kind": "ConflictPolicy",
		"rules": []any{map[string]any{"fields": []any{text}, "decision": "force"}, map[string]any{"decision": "give-up"}},
		"examples": []any{map[string]any{"object": map[string]any{"kind": "Deployment"}, "owner": map[string]any{"manager": "bob"},
			"field": path.String(), "decision": "force"}},
	}
	data, err := json.Marshal(rules)
	require.NoError(t, err)
	write(t, env.Dir, map[string]string{"policy.yaml": string(data)})
	status, out, errs := output(env, "policy", "test", "policy.yaml")
	require.Equal(t, 0, status, "%q: %s%s", text, out, errs)
	_, out, errs = output(env, strings.Fields("plan -f alice.json --live live.json --field-manager alice --policy policy.yaml -o json")...)
	require.NotContains(t, errs, "error", text)
	decided := decidedIn(t, out)
	require.Contains(t, decided, path.String(), "%q", text)
	if !strings.Contains(strings.ReplaceAll(text, `\*`, ""), "*") { // in a Status' text, * is a wildcard
		require.Len(t, decided, 1, "%q", text)
	}
}

// oddObject returns a Deployment with odd names wherever names are free. Its values are all the same.
func oddObject(t *testing.T, value string) string {
	t.Helper()
	texts, containers, env := map[string]any{}, []any{}, []any{}
	for _, name := range oddNames {
		texts[name] = value
		env = append(env, map[string]any{"name": name, "value": value})
		containers = append(containers, map[string]any{"name": name, "image": value})
	}
	containers = append(containers, map[string]any{"name": "with env", "env": env})
	data, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "annotations": texts},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": texts}, "spec": map[string]any{"containers": containers},
		}},
	})
	require.NoError(t, err)
	return string(data)
}

// collect adds the paths in the JSON output of a command: members path and field, and the items of lists of fields.
func collect(tree any, into map[string]bool) {
	switch v := tree.(type) {
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && (name == "path" || name == "field") {
				into[text] = true
			}
			if list, ok := member.([]any); ok && name == "fields" {
				for _, item := range list {
					if text, ok := item.(string); ok {
						into[text] = true
					}
				}
			}
			collect(member, into)
		}
	case []any:
		for _, item := range v {
			collect(item, into)
		}
	}
}

func textsOfPaths(t *testing.T, printed string) map[string]bool {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal([]byte(printed), &tree))
	texts := map[string]bool{}
	collect(tree, texts)
	return texts
}

func mustOutput(t *testing.T, env process.Env, want int, line string) string {
	t.Helper()
	status, out, errs := output(env, strings.Fields(line)...)
	require.Equal(t, want, status, errs)
	return out
}

// forced returns the fields that force modifies, as listed in a table of the ways out.
func forced(t *testing.T, table string) (out []string) {
	t.Helper()
	for line := range strings.Lines(table) {
		if rest, ok := strings.CutPrefix(line, "  modified  "); ok {
			path, _, _ := strings.Cut(rest, "  ")
			out = append(out, strings.TrimSpace(path))
		}
	}
	return out
}

// decidedIn returns the fields that a policy forced, according to the output.
func decidedIn(t *testing.T, text string) (out []string) {
	t.Helper()
	var plan struct {
		Objects []struct {
			Decisions []struct{ Field, Decision string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &plan), text)
	for _, d := range plan.Objects[0].Decisions {
		if d.Decision == "force" {
			out = append(out, d.Field)
		}
	}
	return out
}
