package recorded_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// replay replays a trace on a new server, and returns the results of its steps.
func replay(t *testing.T, trace *recorded.Trace) []recorded.Result {
	var clock atomic.Int64
	server, err := apiserver.New(t.Context(), apiserver.Options{
		Now: func() time.Time { return time.Unix(clock.Load(), 0).UTC() }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer server.Close()
	config := server.LoopbackConfig()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	setClock := func(recordedTime time.Time) { clock.Store(max(clock.Load(), recordedTime.Unix())) }
	results, err := recorded.OfClient(client, config.Host).Replay(t.Context(), trace, setClock)
	require.NoError(t, err)
	return results
}

// altered returns a text with another first letter or, if it is a time, another second.
func altered(text string) string {
	if recordedTime, err := time.Parse(time.RFC3339, text); err == nil {
		return recordedTime.Add(time.Second).Format(time.RFC3339)
	}
	return string(text[0]^1) + text[1:]
}

// alter changes the text at a path of names, in which a list stands for its first item. It returns false if the path
// has no text.
func alter(v any, names ...string) bool {
	for _, name := range names[:len(names)-1] {
		tree, _ := v.(map[string]any)
		if v = tree[name]; v == nil {
			return false
		}
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
	}
	tree, _ := v.(map[string]any)
	last := names[len(names)-1]
	text, _ := tree[last].(string)
	if text != "" {
		tree[last] = altered(text)
	}
	return text != ""
}

// TestAlteredTraces checks that each change to a recorded response makes its step differ, so that the replay compares
// everything. It changes the last possible apply of the first traces that have something to change.
func TestAlteredTraces(t *testing.T) {
	inEntry := func(name string) func(*recorded.Answered, string) bool {
		return func(a *recorded.Answered, _ string) bool { return alter(a.Body, "metadata", "managedFields", name) }
	}
	entries := func(a *recorded.Answered) (metadata map[string]any, list []any) {
		metadata, _ = a.Body["metadata"].(map[string]any)
		list, _ = metadata["managedFields"].([]any)
		return metadata, list
	}
	for _, row := range []struct {
		name string // what is changed
		// alter changes a response, and reports whether it could. version is the object's resourceVersion before the
		// response.
		alter func(a *recorded.Answered, version string) bool
	}{
		{"a time", inEntry("time")},
		{"a manager's name", inEntry("manager")},
		{"an operation", inEntry("operation")},
		{"a field's name", func(a *recorded.Answered, _ string) bool {
			_, list := entries(a)
			for _, entry := range list {
				fields, _ := entry.(map[string]any)["fieldsV1"].(map[string]any)
				fields["f:other"] = map[string]any{}
			}
			return len(list) > 0
		}},
		{"the order of two entries", func(a *recorded.Answered, _ string) bool {
			_, list := entries(a)
			if len(list) > 1 {
				list[0], list[1] = list[1], list[0]
			}
			return len(list) > 1
		}},
		{"an entry that is missing", func(a *recorded.Answered, _ string) bool {
			metadata, list := entries(a)
			if len(list) > 1 {
				metadata["managedFields"] = list[1:]
			}
			return len(list) > 1
		}},
		{"a conflict's cause", func(a *recorded.Answered, _ string) bool {
			return a.Code == 409 && alter(a.Body, "details", "causes", "field")
		}},
		{"a conflict's message", func(a *recorded.Answered, _ string) bool {
			return a.Code == 409 && alter(a.Body, "message")
		}},
		{"a value in the object", func(a *recorded.Answered, _ string) bool {
			return alter(a.Body, "data", "k") || alter(a.Body, "spec", "mode")
		}},
		{"the status code", func(a *recorded.Answered, _ string) bool { a.Code++; return true }},
		{"a warning", func(a *recorded.Answered, _ string) bool { a.Warnings = append(a.Warnings, "more"); return true }},
		{"an object that was written", func(a *recorded.Answered, version string) bool {
			metadata, _ := a.Body["metadata"].(map[string]any)
			isWritten := version != "" && metadata["resourceVersion"] != version
			if isWritten && a.Code < 300 {
				metadata["resourceVersion"] = version
			}
			return isWritten && a.Code < 300
		}},
		{"an object that was not written", func(a *recorded.Answered, version string) bool {
			metadata, _ := a.Body["metadata"].(map[string]any)
			isKept := version != "" && metadata["resourceVersion"] == version
			if isKept {
				metadata["resourceVersion"] = "7" + version
			}
			return isKept
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			all, err := recorded.Load("../../testdata/traces/scenarios", "../../testdata/traces/random")
			require.NoError(t, err)
			count := 0
			for _, trace := range all {
				number := lastAltered(trace, row.alter)
				if number < 0 || count == 3 {
					continue
				}
				count++
				trace.Steps = trace.Steps[:number+1]
				results := replay(t, trace)
				require.Len(t, results, number+1, trace.Name)
				require.NotEmpty(t, results[number].Difference, "%s step %d", trace.Name, number+1)
				require.Empty(t, results[number].Exception, "%s step %d", trace.Name, number+1)
			}
			require.Equal(t, 3, count, "traces that have what is altered")
		})
	}
}

// lastAltered changes the last apply that has something to change, and returns its position, or -1 if no apply has.
func lastAltered(trace *recorded.Trace, alter func(a *recorded.Answered, version string) bool) int {
	for i := len(trace.Steps) - 1; i > 0; i-- {
		step := &trace.Steps[i]
		if step.Request.ContentType != "application/apply-patch+yaml" || step.Fault() != recorded.NoException ||
			strings.Contains(step.Request.Query, "dryRun") || strings.HasSuffix(step.Request.Path, "/scale") {
			continue
		}
		before, _ := trace.Steps[i-1].Response.Body["metadata"].(map[string]any)
		version, _ := before["resourceVersion"].(string)
		changed := step.Response
		changed.Body = runtime.DeepCopyJSON(changed.Body)
		if alter(&changed, version) {
			step.Response = changed
			return i
		}
	}
	return -1
}

func TestLoadErrors(t *testing.T) {
	for _, row := range []struct {
		name, data, want string
	}{
		{"no JSON", "{", "not a trace"},
		{"some other JSON", `{"kind": "Pod"}`, "not a trace: no steps"},
	} {
		path := filepath.Join(t.TempDir(), "trace.json")
		require.NoError(t, os.WriteFile(path, []byte(row.data), 0o600))
		_, err := recorded.Load(path)
		require.ErrorContains(t, err, row.want, row.name)
		require.ErrorContains(t, err, "trace.json", row.name)
	}
	_, err := recorded.Load("nowhere")
	require.ErrorContains(t, err, "nowhere")
}
