package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// watched is a server on which two writers fight over three fields, and many others do not.
type watched struct {
	t      *testing.T
	server *apiserver.Running
	config string // path of a kubeconfig
	client dynamic.Interface
	audit  *json.Encoder // audit log of the writes; nil for none
	mu     sync.Mutex
}

func newWatched(t *testing.T, audit io.Writer) *watched {
	config := filepath.Join(t.TempDir(), "kubeconfig")
	server, err := apiserver.Start(t.Context(), apiserver.Options{Kubeconfig: config})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	w := &watched{t: t, server: server, config: config}
	w.client, err = dynamic.NewForConfig(server.Config())
	require.NoError(t, err)
	if audit != nil {
		w.audit = json.NewEncoder(audit)
	}
	return w
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// apply applies a key of a ConfigMap with force, and logs the write.
func (w *watched) apply(ctx context.Context, manager, name, key, value string) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
		"data": map[string]any{key: value},
	}}
	stored, err := w.client.Resource(configMaps).Namespace("default").
		Apply(ctx, name, obj, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	if w.audit == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.audit.Encode(map[string]any{
		"kind":           "Event",
		"apiVersion":     "audit.k8s.io/v1",
		"level":          "RequestResponse",
		"stage":          "ResponseComplete",
		"verb":           "patch",
		"stageTimestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"objectRef":      map[string]any{"resource": "configmaps"},
		"responseObject": stored.Object,
	}); err != nil {
		w.t.Error(err)
	}
}

// writeRound lets each writer write once: twenty writers with an object each, and two controllers that set the same
// three fields of other objects to different values.
func (w *watched) writeRound(ctx context.Context, round int) {
	for i := range 20 {
		w.apply(ctx, fmt.Sprint("writer-", i), fmt.Sprint("calm-", i), "n", fmt.Sprint(round))
	}
	for _, controller := range []string{"red", "blue"} {
		for i := range 3 {
			w.apply(ctx, controller, fmt.Sprint("fought-", i), "color", controller)
		}
	}
}

var threeFields = []string{"fought-0 .data.color", "fought-1 .data.color", "fought-2 .data.color"}

// fightsIn returns the distinct fields of the fights in a stream of JSON lines.
func fightsIn(t *testing.T, out string) (fields []string) {
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			break // incomplete: still being written
		}
		var f struct {
			Kind, Name, Field string
			Sides             []any
			Suggestions       []struct{ Arguments []string }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &f), line)
		require.Equal(t, "Fight", f.Kind, line)
		if field := f.Name + " " + f.Field; !seen[field] {
			seen[field] = true
			fields = append(fields, field)
			require.Len(t, f.Sides, 2)
			require.Contains(t, strings.Join(f.Suggestions[1].Arguments, " "), "--field-manager red --field .data.color")
		}
	}
	return fields
}

// TestWatch watches a server on which two controllers fight over three fields. It must find exactly these fights, on
// the live server and in an audit log of the same writes.
func TestWatch(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "audit.log"))
	require.NoError(t, err)
	defer log.Close()
	w := newWatched(t, log)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := newNotice(), newNotice()
	status := make(chan int, 1)
	go func() {
		status <- runMain(process.Env{Name: "tenure", Stdout: out, Stderr: errs, Context: ctx},
			[]string{"watch", "-A", "-o", "json", "--kubeconfig", w.config, "--metrics-listen", "127.0.0.1:0"})
	}()
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "/metrics") }, time.Minute,
		10*time.Millisecond)
	for round := 0; len(fightsIn(t, out.String())) < 3; round++ {
		require.Less(t, round, 500, "%s%s", out.String(), errs.String())
		w.writeRound(ctx, round)
	}
	require.ElementsMatch(t, threeFields, fightsIn(t, out.String()))

	url := regexp.MustCompile(`http://\S+`).FindString(errs.String())
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Regexp(t, `tenure_fight_returns\{api_version="v1",field="\.data\.color",kind="ConfigMap",name="fought-0",`+
		`namespace="default"\} \d`, string(metrics))
	cancel()
	require.Equal(t, 1, <-status, errs.String())

	past := func(program string, more ...string) string {
		args := append([]string{"watch", "--audit-log", log.Name()}, more...)
		status, out, errs := output(process.Env{Name: program}, args...)
		require.Equal(t, 1, status, errs)
		return out
	}
	require.ElementsMatch(t, threeFields, fightsIn(t, past("tenure", "-o", "json")))
	table := past("tenure")
	require.Regexp(t, `(?m)^Fight +default +configmap/fought-1 +\.data\.color +blue \(apply\)="blue" red \(apply\)="red" `+
		`+\d`, table)
	require.NotContains(t, table, `\u000a`, "advice has lines of its own")
	const advice = "tenure handover -f MANIFEST --field-manager blue --field .data.color -n default\n"
	require.Contains(t, table, "\n    "+advice)
	require.Contains(t, past("kubectl-tenure"), "\n    kubectl "+advice)
}

// TestWatchOfRequests reads an audit log in which one manager reverts its own values, and another one sends writes
// without changes.
func TestWatchOfRequests(t *testing.T) {
	var log strings.Builder
	second, version := 0, 0
	request := func(verb, uri, object, value, managers string) {
		second++
		fmt.Fprintf(&log, `{"kind":"Event","stage":"ResponseComplete","verb":%q,`+
			`"stageTimestamp":"2026-01-01T00:00:%02[2]dZ",`+
			`"requestURI":"/api/v1/namespaces/default/configmaps/%[3]s?%[4]s","auditID":"%[2]d",`+
			`"objectRef":{"resource":"configmaps","namespace":"default"},`+
			`"responseObject":{"apiVersion":"v1","kind":"ConfigMap","data":{"a":%[5]q},`+
			`"metadata":{"name":%[3]q,"uid":%[3]q,"namespace":"default","resourceVersion":"%[6]d",`+
			`"managedFields":[{"manager":%[7]q,"operation":"Apply",`+
			`"apiVersion":"v1","time":"2026-01-01T00:00:%02[2]dZ","fieldsType":"FieldsV1",`+
			`"fieldsV1":{"f:data":{"f:a":{}}}}]}}}`+"\n", verb, second, object, uri, value, version, managers)
	}
	for i := range 5 {
		version++
		request("patch", "fieldManager=flux&force=true", "flapping", fmt.Sprint(i%2), "flux")
		request("patch", "fieldManager=flux&force=true&dryRun=All", "flapping", "dry", "flux")
	}
	for range 13 {
		request("update", "fieldManager=operator", "idle", "x", "owner")
		request("update", "fieldManager=tester&dryRun=All", "idle", "x", "owner")
		request("get", "", "idle", "x", "owner")
	}
	stdin := strings.NewReader(log.String())
	status, out, errs := output(process.Env{Name: "tenure", Stdin: stdin}, "watch", "--audit-log", "-")
	require.Equal(t, 0, status, "%s: only fights set the status", errs)
	require.Contains(t, out, `default/ConfigMap/flapping: .data.a: flux (apply) sets "0" and "1" by turns; reverted`)
	require.Regexp(t, `(?m)^Flap +default +configmap/flapping +\.data\.a +flux \(apply\)="0" flux \(apply\)="1" +3 `, out)
	require.Contains(t, out, "\nconfigmap/flapping -n default, .data.a: find the two writers that use the name flux: ")
	require.Regexp(t, `(?m)^IdleWriter +default +configmap/idle +- +operator +12 .* 2026-01-01T00:00:14Z +`+
		`2026-01-01T00:00:47Z$`, out)
	require.NotContains(t, out, "tester")
	require.NotContains(t, out, "dry")

	// The same events in the logs of two API servers, which write an event when its request ends.
	var logs [2][]string
	for i, line := range slices.Collect(strings.Lines(log.String())) {
		logs[i/2%2] = append(logs[i/2%2], line)
	}
	for _, lines := range logs {
		for i := 1; i < len(lines); i += 2 {
			lines[i-1], lines[i] = lines[i], lines[i-1]
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"all": log.String(), "a": strings.Join(logs[0], ""), "b": strings.Join(logs[1], "")})
	for _, files := range [][]string{{"a", "b"}, {"b", "a"}, {"all", "all"}, {"a", "all", "b"}} {
		args := []string{"watch"}
		for _, file := range files {
			args = append(args, "--audit-log", file)
		}
		status, same, errs := output(process.Env{Name: "tenure", Dir: dir}, args...)
		require.Equal(t, 0, status, errs)
		require.Equal(t, out, same, files)
	}
	status, same, errs := output(process.Env{Name: "tenure", Dir: dir}, "watch", "--audit-log", "all", "-n", "default")
	require.Equal(t, 0, status, errs)
	require.Equal(t, out, same)
	status, same, errs = output(process.Env{Name: "tenure", Dir: dir}, "watch", "--audit-log", "all", "-n", "other")
	require.Equal(t, 0, status, errs)
	require.Empty(t, same)
	require.Equal(t, "0 objects watched, nothing found\n", errs)

	// A write of the next hour does not make the findings untrue.
	first, _, _ := strings.Cut(log.String(), "\n")
	later := log.String() + strings.ReplaceAll(first, "T00:00", "T01:00")
	stdin = strings.NewReader(later)
	status, out, errs = output(process.Env{Name: "tenure", Stdin: stdin}, "watch", "--audit-log", "-")
	require.Equal(t, 0, status, errs)
	require.Contains(t, out, `sets "0" and "1" by turns`)
	require.Equal(t, "2 objects watched, no findings left: they are older than --window, or their objects were "+
		"deleted\n", errs)
}
