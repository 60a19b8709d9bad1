package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

// The values of Secrets in live objects and intents. Most contain a marker; shortValue is too short for it.
const (
	marker      = "m4rk3r"
	liveValue   = "live-m4rk3r-value"
	intentValue = "intent-m4rk3r-value"
	shortValue  = "zq9"
)

const policyHead = "apiVersion: tenure-ssa.github.io/v1alpha1\nkind: ConflictPolicy\n"

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// secretRuns has arguments for all commands that read objects, without the flags for place and format. OBJ is
// replaced by the object. Commands with nil read no objects.
var secretRuns = map[string][]string{
	"apply": {"-f intent.yaml --field-manager bob", "-f intent.yaml --field-manager bob --force-conflicts",
		"-f intent.yaml --field-manager bob --force-conflicts --dry-run",
		"-f wrong.yaml --field-manager bob --force-conflicts", "-f intent.yaml --field-manager bob --policy policy.yaml"},
	"replace": {"-f intent.yaml", "-f stale.yaml", "-f wrong.yaml"},
	"plan": {"-f intent.yaml --field-manager bob", "-f intent.yaml --field-manager bob -o html", "-f intent.yaml --field-manager bob --force-conflicts",
		"-f intent.yaml --field-manager bob --force-conflicts --show-managed-fields", "-f intent.yaml --summary",
		"-f intent.yaml --field-manager bob --force-conflicts --offline", "-f wrong.yaml --force-conflicts",
		"-f intent.yaml --field-manager bob --force-conflicts --apply --yes",
		"-f intent.yaml --field-manager bob --apply --yes",
		"-f other.yaml --field-manager alice --prune --all", "-f other.yaml --field-manager bob",
		"-f intent.yaml --field-manager bob --policy policy.yaml", "-f intent.yaml --field-manager bob --policy refuse.yaml",
		"-f other.yaml -f intent.yaml --field-manager bob --drift"},
	"conflicts": {"-f intent.yaml --field-manager bob", "-f intent.yaml --field-manager bob --resolve force --yes",
		"-f intent.yaml --field-manager bob --resolve share --yes",
		"-f intent.yaml --field-manager bob --resolve give-up --dry-run",
		"-f intent.yaml --field-manager bob --resolve force --field .data --yes",
		"-f intent.yaml --field-manager bob --policy policy.yaml", "-f intent.yaml --field-manager bob --policy refuse.yaml"},
	"policy":   {"init OBJ --field-manager alice", "test policy.yaml -f intent.yaml --field-manager bob"},
	"handover": {"-f mine.yaml --field-manager alice --field .data.password --yes", "-f mine.yaml --field .none --yes"},
	"blame":    {"OBJ", "OBJ --show-managed-fields", "OBJ --time", "OBJ --manager alice", "OBJ -o html"},
	"extract":  {"OBJ --manager alice", "OBJ --manager nobody"},
	"get":      {"OBJ", "OBJ --show-managed-fields"},
	"report":   {"OBJ", "OBJ --silent 1ns", "OBJ --drift --policy refuse.yaml"},
	"transfer": {"OBJ --from alice --to bob --all --yes", "OBJ --from alice --to bob --field .data --dry-run",
		"OBJ --from alice --to bob --field .x --yes"},
	"release": {"OBJ --from alice --all --yes", "OBJ --from alice --field .data --yes"},
	"adopt":   {"OBJ --to bob --all --yes", "OBJ --to bob --field .data --yes"},
	"drop":    {"OBJ --from alice --yes"},
	"rename":  {"OBJ --from alice --to bob --yes"},
	"upgrade": {"OBJ --field-manager flux --yes", "OBJ --field-manager flux --intent mine.yaml --dry-run",
		"OBJ --field-manager flux --intent wrong.yaml --yes"},
	"downgrade": {"OBJ --field-manager alice --yes"},
	"delete":    {"OBJ"},
	"watch":     {"--audit-log audit.log", "--audit-log audit.log --returns 1"},
	"test":      {"scenario.txtar", "-v scenario.txtar"},
	"serve":     nil, "envtest": nil, "version": nil, "helm": nil,
	"ui": nil, // package ui has a test of its own
}

// isManifest reports whether a command was asked to print a manifest or the next live object, which contain values.
func isManifest(args []string, format string, ofFiles bool) bool {
	asked := slices.Contains([]string{"yaml", "json", "ndjson", "patch"}, format)
	switch args[0] {
	case "extract":
		return true
	case "get":
		return asked
	case "apply", "replace", "handover", "transfer", "release", "adopt", "drop", "rename", "upgrade", "downgrade":
		return asked || ofFiles
	case "conflicts":
		return slices.Contains(args, "--resolve") && (asked || ofFiles)
	}
	return false
}

func writeSecretFiles(t *testing.T, dir string) (live string) {
	applied := jsonText(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "c", "namespace": "default",
			"annotations": map[string]any{"note": liveValue}},
		"data": map[string]any{"password": encoded(liveValue)}, "stringData": map[string]any{"token": liveValue},
	})
	fields := map[string]any{"f:password": map[string]any{}, "f:short": map[string]any{},
		`v:"` + liveValue + `"`: map[string]any{}, `k:{"a":"` + liveValue + `"}`: map[string]any{}}
	entry := func(manager, operation string) map[string]any {
		return map[string]any{
			"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2020-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": fields, "f:metadata": map[string]any{
				"f:annotations": map[string]any{".": map[string]any{}, "f:note": map[string]any{},
					"f:kubectl.kubernetes.io/last-applied-configuration": map[string]any{}}}},
		}
	}
	live = jsonText(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": map[string]any{
			"name": "c", "namespace": "default",
			"annotations": map[string]any{"note": liveValue,
				"kubectl.kubernetes.io/last-applied-configuration": applied + "\n"},
			"managedFields": []any{entry("alice", "Apply"), entry("kubectl-client-side-apply", "Update")},
		},
		"data": map[string]any{"password": encoded(liveValue), "short": encoded(shortValue),
			"gone": encoded(liveValue)},
	})
	intent := "apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: default, annotations: {note: %s}}\n" +
		"data: {password: " + encoded(intentValue) + "}\nstringData: {token: " + intentValue + ", short: " + shortValue +
		"}\n"
	write(t, dir, map[string]string{
		"live.yaml":   live,
		"intent.yaml": fmt.Sprintf(intent, "c", intentValue),
		"other.yaml":  fmt.Sprintf(intent, "new", intentValue),
		"mine.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: c, namespace: default}\ndata: {password: " +
			encoded(liveValue) + ", short: " + encoded(shortValue) + "}\n",
		"policy.yaml": policyHead + "rules: [{fields: [.data.password], decision: share}, {decision: give-up}]\n",
		"refuse.yaml": policyHead + "rules: [{fields: [.data.password], decision: refuse}, {decision: force}]\n",
		"stale.yaml":  strings.Replace(fmt.Sprintf(intent, "c", intentValue), "{name", "{resourceVersion: '1', name", 1),
		"wrong.yaml": fmt.Sprintf(intent, "c", intentValue) + "unknown: " + intentValue + "\nimmutable: " + intentValue +
			"\n",
		"scenario.txtar": "A Secret.\n\n-- apply alice --\n" + fmt.Sprintf(intent, "c", intentValue) + "-- want --\nx: y\n" +
			"-- apply bob --\ndata: {password: " + encoded(liveValue) + "}\n-- unchanged --\n",
	})
	var audit bytes.Buffer
	for i, value := range strings.Fields(strings.Repeat(liveValue+" "+intentValue+" ", 5)) {
		object := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"name": "c", "namespace": "default", "resourceVersion": fmt.Sprint(i), "managedFields": []any{map[string]any{
				"manager": value[:4], "operation": "Apply", "apiVersion": "v1", "time": time.Unix(int64(i), 0).UTC(),
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": fields}}},
		}, "data": map[string]any{"password": encoded(value), "short": encoded(value)},
			"stringData": map[string]any{"x": value}}
		require.NoError(t, json.NewEncoder(&audit).Encode(map[string]any{
			"kind": "Event", "stage": "ResponseComplete", "verb": "patch", "responseObject": object,
			"stageTimestamp": time.Unix(int64(i), 0).UTC(), "objectRef": map[string]any{},
		}))
	}
	write(t, dir, map[string]string{"audit.log": audit.String()})
	return live
}

// talkative is a cluster whose warnings and errors quote the values that are written.
type talkative struct {
	testCluster
	refuses bool
	flags   []string // to access the cluster
}

func (c *talkative) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/secrets") {
		c.testCluster.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	said := "weak"
	if strings.HasSuffix(r.URL.Path, "/secrets/c") {
		said = fmt.Sprintf("%s, %q, %s, %s", liveValue, encoded(liveValue), shortValue,
			encoded(jsonText(map[string]any{"password": liveValue})))
	}
	if bytes.Contains(body, []byte(intentValue)) {
		said += fmt.Sprintf(", %q, %s", intentValue, encoded(intentValue))
	}
	w.Header().Add("Warning", `299 - "`+strings.ReplaceAll("weak: "+said, `"`, `\"`)+`"`)
	if !c.refuses {
		c.testCluster.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422, "message": said,
		"details": map[string]any{"causes": []any{map[string]any{"field": "data[" + liveValue + "]", "message": said}}},
	})
}

func newTalkative(t *testing.T, refuses bool) *talkative {
	c := &talkative{testCluster: *newTestCluster(testHost{t}, apiserver.Options{}), refuses: refuses}
	c.flags = listen(testHost{t}, c)
	return c
}

// reset restores the Secret to its first state.
func (c *talkative) reset(t *testing.T, live string) {
	const path = "/api/v1/namespaces/default/secrets"
	c.send(http.MethodDelete, path, "")
	created := c.send(http.MethodPost, path, live)
	require.Equal(t, http.StatusCreated, created.Code, created.Body)
	updated := c.send(http.MethodPut, path+"/c", live) // an update creates managed fields
	require.Equal(t, http.StatusOK, updated.Code, updated.Body)
}

// requireNoValue checks that a text contains no value of a Secret, neither plain nor as a part of base64, at any
// offset.
func requireNoValue(t *testing.T, args []string, text string) {
	t.Helper()
	for _, value := range []string{marker, shortValue, encoded(shortValue), encoded(marker)[:6],
		encoded("x" + marker)[2:8], encoded("xx" + marker)[3:10]} {
		require.NotContains(t, text, value, "%v", args)
	}
}

// formatsOf returns the output formats of a command, and "" for the default.
func formatsOf(cmd *cobra.Command) []string {
	formats := []string{""}
	if flag := cmd.Flags().Lookup("output"); flag != nil {
		_, list, _ := strings.Cut(flag.Usage, ": ")
		formats = append(formats, strings.Split(list, ", ")...)
	}
	return formats
}

// No command prints a value of a Secret, wherever the value is, except in manifests, which the user asked for.
func TestSecretValues(t *testing.T) {
	shown, manifests := map[string]bool{}, 0
	clusters := map[string]*talkative{"cluster": newTalkative(t, false), "refusing": newTalkative(t, true)}
	for _, cmd := range Root(&process.Env{Server: server.New()}).Commands() {
		runs, ok := secretRuns[cmd.Name()]
		require.True(t, ok, "%s: what it prints of Secrets is not tested", cmd.Name())
		for _, mode := range []string{"files", "store", "cluster", "refusing"} {
			for _, format := range formatsOf(cmd) {
				for _, run := range runs {
					args, stdout, stderr := runOnSecret(t, mode, clusters[mode], strings.Fields(cmd.Name()+" "+run), format)
					requireNoValue(t, args, stderr)
					if isManifest(args, format, mode == "files") {
						if strings.Contains(stdout, marker) || strings.Contains(stdout, encoded(liveValue)) {
							manifests++
						}
						continue
					}
					requireNoValue(t, args, stdout)
					shown[cmd.Name()] = shown[cmd.Name()] || strings.Contains(stdout+stderr, "***")
				}
			}
		}
	}
	for _, name := range []string{"apply", "plan", "conflicts", "blame", "watch", "test"} {
		require.True(t, shown[name], "%s shows that there is a value", name)
	}
	require.Greater(t, manifests, 20)
}

// runOnSecret runs a command on a Secret, in a place created for it.
func runOnSecret(
	t *testing.T, mode string, c *talkative, args []string, format string,
) (_ []string, stdout, stderr string) {
	dir := t.TempDir()
	live := writeSecretFiles(t, dir)
	object, place := []string{"secret/c", "-n", "default"}, []string(nil)
	switch mode {
	case "files":
		object, place = nil, []string{"--live", "live.yaml"}
	case "store":
		place = []string{"--store", "s.db"}
		for range 2 { // the update creates managed fields
			status, _, errs := output(process.Env{Dir: dir}, "replace", "-f", "live.yaml", "--store", "s.db")
			require.Zero(t, status, errs)
		}
	default:
		c.reset(t, live)
		place = c.flags
	}
	if slices.Contains([]string{"test", "watch"}, args[0]) {
		place = nil
	}
	if i := slices.Index(args, "OBJ"); i >= 0 {
		args = slices.Replace(args, i, i+1, object...)
	}
	if args = append(args, place...); format != "" {
		args = append(args, "-o", format)
	}
	_, stdout, stderr = output(process.Env{Dir: dir}, args...)
	return args, stdout, stderr
}
