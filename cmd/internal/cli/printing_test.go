package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// printing lists commands that print what others wrote, for objects in files.
var printing = []string{
	"plan -f intent.json --live live.json --field-manager me",
	"plan -f intent.json --live live.json --field-manager me --force-conflicts -o diff",
	"plan -f intent.json --live live.json --field-manager me --force-conflicts -o json",
	"conflicts -f intent.json --live live.json --field-manager me",
	"conflicts -f intent.json --live live.json --field-manager me -o json",
	"conflicts -f intent.json --live live.json --field-manager me -o status",
	"conflicts -f intent.json --live live.json --field-manager me --resolve force -o yaml",
	"conflicts -f intent.json --live live.json --field-manager me --resolve share -o json",
	"blame --live live.json",
	"blame --live live.json -o html",
	"blame --live live.json -o json --show-managed-fields",
	"apply -f intent.json --live live.json",
	"apply -f intent.json --live live.json --force-conflicts",
	"replace -f intent.json --live live.json -o name",
	"handover -f intent.json --live live.json --field .data --field-manager me",
	"release --live live.json --from plain --all",
	"release --live live.json --from plain --all -o patch",
	"release --live live.json --from plain --all -o name",
	"upgrade --live live.json --field-manager me --from plain --everything",
	"downgrade --live live.json --field-manager plain",
	"apply -f intent.json --store new.db",
	"apply -f role.json --store new.db -o yaml",
	"apply -f named.json --store new.db",
	"get --store new.db -o wide",
	"get --store new.db -o name",
	"get --store new.db -o yaml --show-managed-fields",
	"blame all -A --store new.db",
	"delete clusterrole a --store new.db",
	"apply -f broken.json --store new.db",
	"test scenario.txtar",
	"replay trace.json",
	"replay --verbose trace.json",
	"report --live followed.json",
	"report --live followed.json -o json",
	"report --live TEXT.json --silent 1h",
	"watch --audit-log followed.log",
	"watch --audit-log followed.log -o json",
	"plan -f followed-intent.json --live TEXT.json --field-manager TEXT",
}

// argumentsOf returns the arguments of a line of printing, with TEXT replaced by the text that others write.
func argumentsOf(line, text string) []string {
	args := strings.Fields(line)
	for i, arg := range args {
		arg = strings.Replace(arg, "TEXT.json", fileOf(text), 1)
		args[i] = strings.Replace(arg, "TEXT", text, 1)
	}
	return args
}

// fileOf returns a file name that contains a text.
func fileOf(text string) string {
	name := strings.NewReplacer("/", "_", "\x00", "_").Replace(text)
	for len(name) > 100 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return "x" + name + ".json"
}

// FuzzPrinting puts a text wherever others can write one: in names, keys, values, managers, versions and messages. On
// a terminal with or without colors, no command may print a control character from it, and YAML and JSON output must
// contain the text unchanged. Each input runs one command, or the sequence of all commands that use the store, so
// that the fuzzer tries many texts.
func FuzzPrinting(f *testing.F) {
	sequences := printingSequences()
	for _, text := range []string{
		"plain", "$(touch pwned)", "`touch pwned`", "a;b|c&d>e<f", "*?[a]{b,c}~!", "../..", "<b>&amp;[a](b)", "# a", "-o",
		"a b", "%s", "=a", "a\x1b[2J\x1b]0;title\ab", "\u009b31m", "\u202etxt.exe\u2066", "a\u200bb",
		"two\nlines\r\t\u2028", "\U000e0041", "\\u202e", "{", `"'\`, "\x1b[31mred\x1b[0m",
	} {
		for i := range sequences {
			f.Add(text, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, command uint8) {
		text = strings.ToValidUTF8(text, "\ufffd")
		if len(text) > 200 {
			return
		}
		dir := hostileFolder(t, text)
		for _, line := range sequences[int(command)%len(sequences)] {
			args := argumentsOf(line, text)
			requireFollowable(t, dir, line, text)
			for _, terminal := range []bool{false, true} {
				if i := slices.Index(args, "--store"); terminal && i >= 0 && args[0] != "get" {
					continue // no need to repeat
				}
				_, out, errs := output(process.Env{Dir: dir, Terminal: func(any) bool { return terminal }}, args...)
				require.NotEmpty(t, out+errs, "%v", args)
				requireHarmless(t, args, out+errs, terminal)
				isDocument := slices.Contains(args, "yaml") || slices.Contains(args, "json") && args[0] != "watch"
				if len(text) > 0 && errs == "" && isDocument {
					requireText(t, args, []byte(out), text)
				}
			}
		}
	})
}

// printingSequences returns each command of printing as a sequence of its own, except commands that use the store:
// these are one sequence, because later commands print what earlier ones wrote.
func printingSequences() [][]string {
	var alone [][]string
	var stored []string
	for _, line := range printing {
		if strings.Contains(line, "--store") {
			stored = append(stored, line)
		} else {
			alone = append(alone, []string{line})
		}
	}
	return append(alone, stored)
}

// plainName is a text without special meaning for shells, patterns or paths.
const plainName = "plainname"

// suggestedForPlain caches, for a line of printing, the arguments of the commands that it suggests for plainName.
var suggestedForPlain sync.Map

// requireFollowable checks that a shell passes a suggested command's arguments on as they are meant: they must equal
// the arguments suggested for plainName, with the text in its place. Exempt are names that policy init proposes,
// which are patterns.
func requireFollowable(t *testing.T, dir, line, text string) {
	t.Helper()
	isShown := printable.Text(text) == text && strings.TrimSpace(text) != "" && !strings.ContainsAny(text, "\n\t")
	if !isShown || strings.Contains(line, "--store") {
		return
	}
	suggested := func(dir, text string) (all [][]string) {
		_, out, errs := output(process.Env{Dir: dir}, argumentsOf(line, text)...)
		for _, command := range suggestedIn(out + errs) {
			all = append(all, shellWords(t, command))
		}
		return all
	}
	known, ok := suggestedForPlain.Load(line)
	if !ok {
		known, _ = suggestedForPlain.LoadOrStore(line, suggested(hostileFolder(t, plainName), plainName))
	}
	var want [][]string
	for _, words := range known.([][]string) {
		words = slices.Clone(words)
		want = append(want, words)
		for i := range words {
			words[i] = strings.NewReplacer("."+plainName, fieldpath.FieldElement(text).String(), fileOf(plainName), fileOf(text),
				plainName, text).Replace(words[i])
		}
	}
	if want != nil {
		require.ElementsMatch(t, want, suggested(dir, text), "%q: %s", text, line)
	}
}

// hostileFolder returns a folder with the files that contain a text.
func hostileFolder(t *testing.T, text string) (dir string) {
	dir = t.TempDir()
	files := hostileFiles(text)
	files[fileOf(text)] = files["followed.json"]
	for name, file := range files {
		data, ok := file.([]byte)
		if !ok {
			var err error
			data, err = json.Marshal(file)
			require.NoError(t, err)
		}
		write(t, dir, map[string]string{name: string(data)})
	}
	return dir
}

// hostileFiles returns files that contain a text in every possible position.
func hostileFiles(text string) map[string]any {
	object := func(name, value string, managed ...any) map[string]any {
		metadata := map[string]any{"name": name, "annotations": map[string]any{text: text}}
		if managed != nil {
			metadata["managedFields"], metadata["resourceVersion"] = managed, "1"
		}
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
			"data": map[string]any{text: value, "other": text + value},
		}
	}
	entry := func(manager, operation, subresource string) any {
		return map[string]any{
			"manager": manager, "operation": operation, "apiVersion": "v1", "subresource": subresource,
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": map[string]any{
				".": map[string]any{}, "f:" + text: map[string]any{}, "f:other": map[string]any{},
			}},
		}
	}
	live := object("a", text, entry(text, "Apply", ""), entry("plain", "Apply", ""), entry(text, "Update", text))
	followed := object("a", text, entry(text, "Apply", ""), entry(text, "Update", ""),
		entry("another manager", "Apply", ""))
	var audit []byte
	for i := range 10 {
		timestamp, manager := time.Unix(int64(i), 0).UTC().Format(time.RFC3339), fmt.Sprint(text, i%2)
		fight := object("a", manager, map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": timestamp, "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:data": map[string]any{"f:" + text: map[string]any{}}},
		})
		fight["metadata"].(map[string]any)["namespace"] = "shop"
		fight["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(i)
		audit = append(audit, jsonText(map[string]any{
			"kind": "Event", "stage": "ResponseComplete", "verb": "patch", "stageTimestamp": timestamp, "responseObject": fight,
		})+"\n"...)
	}
	step := map[string]any{
		"request": map[string]any{
			"method": "PATCH", "path": "/api/v1/namespaces/default/configmaps/a", "query": "fieldManager=a",
			"contentType": "application/apply-patch+yaml", "body": object("a", "1"),
		},
		"now":      "2026-01-02T03:04:05Z",
		"response": map[string]any{"code": 201, "body": live, "warnings": []any{text}},
	}
	refused := map[string]any{
		"request":  map[string]any{"method": "DELETE", "path": "/api/v1/namespaces/default/configmaps/a"},
		"response": map[string]any{"code": 503, "body": map[string]any{"message": text}},
	}
	role := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": map[string]any{"name": name},
			"rules":    []any{map[string]any{"verbs": []any{text}, "apiGroups": []any{""}, "resources": []any{"pods"}}},
		}
	}
	return map[string]any{
		"followed.json": followed, "followed.log": audit, "followed-intent.json": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			"data": map[string]any{"other": text + text},
		},
		"live.json": live, "intent.json": object("a", text+"2"), "role.json": role("a"), "named.json": role("b" + text),
		"broken.json": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, text: text,
		},
		"trace.json": map[string]any{"name": text, "steps": []any{step, refused}},
		"scenario.txtar": []byte("-- apply " + text + " --\n" +
			`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":` + jsonText(text) + "}}\n-- want --\n{}\n"),
	}
}

// coloring matches the escape sequences that color text on a terminal.
var coloring = regexp.MustCompile(`\x1b\[(0|0;22|22|1|2|[39][0-7])m`)

// requireHarmless checks that a text contains no control characters or escape sequences for a terminal, except
// colors.
func requireHarmless(t *testing.T, args []string, text string, colors bool) {
	t.Helper()
	if colors {
		text = coloring.ReplaceAllString(text, "")
	}
	for _, r := range text {
		require.True(t, unicode.IsGraphic(r) || r == '\n' || r == '\t', "%v prints %U in %q", args, r, text)
	}
}

// requireText checks that documents contain a text unchanged.
func requireText(t *testing.T, args []string, document []byte, text string) {
	t.Helper()
	var tree any
	read := json.Unmarshal
	if slices.Contains(args, "yaml") {
		read = func(data []byte, into any) error { return yaml.Unmarshal(data, into) }
	}
	require.NoError(t, read(document, &tree), "%v: %s", args, document)
	found := false
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				found = found || key == text
				visit(item)
			}
		case []any:
			for _, item := range v {
				visit(item)
			}
		case string:
			found = found || strings.Contains(v, text)
		}
	}
	visit(tree)
	require.True(t, found, "%v prints no %q in\n%s", args, text, document)
}

// The memory of a process that runs many commands, such as a program that links them, does not grow with each
// command.
func TestMemoryOfCommands(t *testing.T) {
	const warmUp, rounds, perCommand = 2, 4, 12 << 10
	commands := 0
	round := func(i int) {
		dir := hostileFolder(t, fmt.Sprint("text ", i))
		for _, line := range printing {
			commands++
			output(process.Env{Dir: dir}, argumentsOf(line, fmt.Sprint("text ", i))...)
		}
	}
	used := func() uint64 {
		var stats runtime.MemStats
		for range 3 {
			runtime.GC() // finalizers and weak pointers need several collections
		}
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc + stats.StackInuse
	}
	for i := range warmUp {
		round(i)
	}
	before, goroutines := used(), runtime.NumGoroutine()
	commands = 0
	for i := range rounds {
		round(warmUp + i)
	}
	after := used()
	t.Logf("%d commands, %d bytes each; %d goroutines, then %d", commands, (int(after)-int(before))/commands, goroutines,
		runtime.NumGoroutine())
	require.Less(t, int(after)-int(before), commands*perCommand)
	require.Less(t, runtime.NumGoroutine(), goroutines+10)
}

// TestReadingBar checks that, on a terminal, a bar counts the objects of a list while they are read, unless output is
// printed meanwhile.
func TestReadingBar(t *testing.T) {
	env := process.Env{Name: "tenure", Dir: t.TempDir(), Terminal: func(any) bool { return true }}
	write(t, env.Dir, map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}}}",
		"tenure.yaml": "rules: []"})
	status, _, errs := output(env, "apply", "-f", "a.yaml", "--store", "s.db")
	require.Zero(t, status, errs)
	for command, isShown := range map[string]bool{
		"report configmaps -l a=b":                                true,
		"report configmaps -l a=b --policy tenure.yaml -o ndjson": false,
		"blame configmaps -l a=b -o html":                         true,
		"blame configmaps -l a=b":                                 false,
		"release configmaps -l a=b --from x --all --dry-run":      true,
		"blame configmap/a":                                       false,
	} {
		_, _, errs := output(env, append(strings.Fields(command), "--store", "s.db")...)
		require.Equal(t, isShown, strings.Contains(errs, "reading objects"), "%s: %s", command, errs)
	}
}
