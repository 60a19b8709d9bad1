package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/cmd/internal/replay"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

const traces = "../../../testdata/traces"

// The reasons for which a step may be skipped, copied on purpose: a new reason
// is a step that is no longer compared, and wants somebody to look at it.
var skips = []string{
	"decided by validation of values, above the engine",
	"decided by a precondition, above the engine",
	"decided by HTTP, above the engine",
	"create of a built-in type changed by admission after its fields were tracked",
	"decided by the conversion of values to Go types, above the engine",
	"apply to /scale of a custom resource, a fault of the server",
	"no request: the schema changes",
	"a delete, which tracks no fields",
	"the first look at an object, as it was found",
}

// TestTraces replays the recorded traces. No plan of an apply is left out: its outcome is the recorded server's, or a
// row of doc/differences.md predicts the whole response of that server (TestFaultsOfTheRecordedServer).
func TestTraces(t *testing.T) {
	for _, row := range []struct {
		folder    string
		traces    int
		least     int         // steps that must agree, so that skipping all is no success
		plans     int         // applies whose plans agree
		explained map[int]int // applies whose plans do not, by the difference that explains it
	}{
		{"scenarios", 27, 100, 142, map[int]int{}},
		{"topology", 8, 15, 72, map[int]int{}},
		{"random", 40, 400, 310, map[int]int{1: 3, 28: 7}},
	} {
		t.Run(row.folder, func(t *testing.T) {
			t.Parallel()
			loaded, err := replay.Load(filepath.Join(traces, row.folder))
			require.NoError(t, err)
			require.Len(t, loaded, row.traces)
			agreed, plans, applies, explained := 0, map[replay.PlanResult]int{}, 0, map[int]int{}
			for _, trace := range loaded {
				results := replay.RunEngine(trace, openapi.Builtin())
				require.Len(t, results, len(trace.Steps), trace.Name)
				for _, r := range results {
					where := fmt.Sprintf("%s step %d (%s)", r.Trace, r.Step, r.Kind)
					require.NotEqual(t, replay.Differed, r.Outcome, "%s: %s", where, r.Detail)
					if r.Outcome == replay.Skipped {
						require.Contains(t, skips, r.Detail)
					} else {
						agreed++
					}
					plans[r.Plan]++
					if strings.HasPrefix(r.Kind, "apply") {
						applies++
						require.NotEmpty(t, r.Planned, where)
					}
					if r.Plan == replay.PlanExplained {
						explained[r.Difference]++
					}
				}
			}
			require.GreaterOrEqual(t, agreed, row.least)
			require.Equal(t, row.explained, explained)
			require.Equal(t, row.plans, plans[replay.PlanAgrees])
			require.Equal(t, applies, plans[replay.PlanAgrees]+plans[replay.PlanExplained]+plans[replay.PlanNeedsValidation],
				"every apply is compared, but for those that values were refused of")
		})
	}
}

// alteration changes the recorded answer to an intent a little, and reports
// whether the answer has what it changes.
type alteration func(intent, answer map[string]any) bool

// ofAnswer is an alteration that does not ask what the intent was.
func ofAnswer(alter func(answer map[string]any) bool) alteration {
	return func(_, answer map[string]any) bool { return alter(answer) }
}

// alterValue alters a number that the intent set; others may be defaults that the
// server's own code sets, which no replay can know.
func alterValue(intent, answer map[string]any) bool {
	wanted, _ := intent["spec"].(map[string]any)
	spec, _ := answer["spec"].(map[string]any)
	for name := range wanted {
		if n, ok := spec[name].(int64); ok {
			spec[name] = n ^ 1
			return true
		}
	}
	return false
}

// Each alteration of an answer makes the step differ that had agreed: the replay
// looks at all of these. Steps of every trace are tried, and all must differ.
func TestAlteredTraces(t *testing.T) {
	for _, row := range []struct {
		name  string // what is altered
		alter alteration
	}{
		{"a time", entry(func(e map[string]any) bool { return alterText(e, "time", lastDigitOfSeconds) })},
		{"a manager's name", entry(func(e map[string]any) bool { return alterText(e, "manager", firstByte) })},
		{"an operation", entry(func(e map[string]any) bool { return alterText(e, "operation", otherOperation) })},
		{"a field's name", entry(func(e map[string]any) bool { return alterFieldName(e["fieldsV1"]) })},
		{"the order of two entries", ofAnswer(alterOrder)},
		{"an entry that is missing", ofAnswer(alterCount)},
		{"a conflict's cause", ofAnswer(alterCause)},
		{"a conflict's message", ofAnswer(func(answer map[string]any) bool {
			return answer["code"] == int64(409) && alterText(answer, "message", firstByte)
		})},
		{"a value in the object", alterValue},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			altered := 0
			for _, folder := range []string{"scenarios", "random"} {
				loaded, err := replay.Load(filepath.Join(traces, folder))
				require.NoError(t, err)
				for _, trace := range loaded {
					if i := lastAlterable(trace, row.alter); i >= 0 {
						altered++
						// What comes after starts from the altered object.
						trace.Steps = trace.Steps[:i+1]
						got := replay.RunEngine(trace, openapi.Builtin())
						require.Equal(t, replay.Differed, got[i].Outcome, "%s step %d (%s)", trace.Name, i, got[i].Kind)
						require.NotEmpty(t, got[i].Detail)
					}
				}
			}
			require.GreaterOrEqual(t, altered, 3, "traces that have what is altered")
		})
	}
}

// lastAlterable alters the last apply of a trace that agrees and that has what is
// to be altered, and returns its position; -1 for none.
func lastAlterable(trace *replay.Trace, alter alteration) int {
	results := replay.RunEngine(trace, openapi.Builtin())
	for _, r := range slices.Backward(results) {
		step := &trace.Steps[r.Step]
		if r.Outcome != replay.Agreed || r.Kind != "apply" || step.Response.Body == nil {
			continue
		}
		// The trees of a trace are used as they are by the steps behind it.
		answer := runtime.DeepCopyJSON(step.Response.Body)
		intent, _ := step.Request.Body.(map[string]any)
		if alter(intent, answer) {
			step.Response.Body = answer
			return r.Step
		}
	}
	return -1
}

func entries(answer map[string]any) []any {
	metadata, _ := answer["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return list
}

// entry alters the first entry that it can.
func entry(alter func(map[string]any) bool) alteration {
	return func(_, answer map[string]any) bool {
		return slices.ContainsFunc(entries(answer), func(e any) bool { return alter(e.(map[string]any)) })
	}
}

func alterText(m map[string]any, name string, how func(string) string) bool {
	s, _ := m[name].(string)
	if s == "" {
		return false
	}
	m[name] = how(s)
	return m[name] != s
}

func firstByte(s string) string { return string(s[0]^1) + s[1:] }

// lastDigitOfSeconds keeps the time a time: 12:00:05Z becomes 12:00:04Z.
func lastDigitOfSeconds(s string) string {
	i := len(s) - len("5Z")
	return s[:i] + string(s[i]^1) + s[i+1:]
}

func otherOperation(s string) string {
	if s == "Apply" {
		return "Update"
	}
	return "Apply"
}

// alterFieldName changes the last byte of one field's name, at any depth.
func alterFieldName(v any) bool {
	fields, _ := v.(map[string]any)
	for name, below := range fields {
		if strings.HasPrefix(name, "f:") && len(fields) == 1 && len(below.(map[string]any)) == 0 {
			delete(fields, name)
			fields[name[:len(name)-1]+"~"] = below
			return true
		}
		if alterFieldName(below) {
			return true
		}
	}
	return false
}

func alterOrder(answer map[string]any) bool {
	list := entries(answer)
	if len(list) < 2 {
		return false
	}
	list[0], list[1] = list[1], list[0]
	return true
}

func alterCount(answer map[string]any) bool {
	list := entries(answer)
	if len(list) < 2 {
		return false
	}
	answer["metadata"].(map[string]any)["managedFields"] = list[1:]
	return true
}

func alterCause(answer map[string]any) bool {
	details, _ := answer["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	if len(causes) == 0 || answer["code"] != int64(409) {
		return false
	}
	return alterText(causes[0].(map[string]any), "field", func(s string) string { return s + "x" })
}

// TestBeginsWithRead replays a trace that begins in the middle of an object's life: its first
// step shows the object, and what comes after is compared with that.
func TestBeginsWithRead(t *testing.T) {
	whole, err := replay.Load(filepath.Join(traces, "scenarios"))
	require.NoError(t, err)
	const apply = "application/apply-patch+yaml"
	begun := 0
	for _, trace := range whole {
		for i := 1; i < len(trace.Steps); i++ {
			before, after := trace.Steps[i-1], trace.Steps[i]
			if before.Response.Code >= 300 || after.Response.Code != 200 || before.Request.Path != after.Request.Path ||
				before.Request.ContentType != apply || after.Request.ContentType != apply ||
				strings.Contains(before.Request.Query, "dryRun") {
				continue
			}
			read := before
			read.Request.Method, read.Request.Body, read.Response.Code = "GET", nil, 200
			cut := &replay.Trace{Name: trace.Name, CRD: trace.CRD, Steps: []replay.Step{read, after}}
			results := replay.RunEngine(cut, openapi.Builtin())
			require.Equal(t, replay.Skipped, results[0].Outcome, "%s: %s", trace.Name, results[0].Detail)
			require.Equal(t, replay.Agreed, results[1].Outcome, "%s step %d: %s", trace.Name, i, results[1].Detail)
			// A later read is compared.
			altered := read
			altered.Response.Body = runtime.DeepCopyJSON(read.Response.Body)
			altered.Response.Body["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "nobody"}}
			cut.Steps = []replay.Step{read, altered}
			require.Equal(t, replay.Differed, replay.RunEngine(cut, openapi.Builtin())[1].Outcome)
			begun++
		}
	}
	require.Greater(t, begun, 5)
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
		_, err := replay.Load(path)
		require.ErrorContains(t, err, row.want, row.name)
		require.ErrorContains(t, err, "trace.json", row.name)
	}
	_, err := replay.Load("nowhere")
	require.ErrorContains(t, err, "nowhere")
}

// TestAlteredOutcomes shows that the replay compares plans: an apply that wrote
// and is said not to have, or the other way round, makes its step differ.
func TestAlteredOutcomes(t *testing.T) {
	wrote, same := 0, 0
	for _, folder := range []string{"scenarios", "random"} {
		loaded, err := replay.Load(filepath.Join(traces, folder))
		require.NoError(t, err)
		for _, trace := range loaded {
			// The last apply that wrote, and the last that did not, with what it
			// is said to have come to instead.
			var last [2]int
			var said [2]any
			var before any
			for i, step := range trace.Steps {
				if step.Response.Code >= 300 || strings.Contains(step.Request.Query, "dryRun") ||
					strings.HasSuffix(step.Request.Path, "/scale") {
					continue
				}
				metadata, _ := step.Response.Body["metadata"].(map[string]any)
				now := metadata["resourceVersion"]
				if step.Request.ContentType == "application/apply-patch+yaml" && before != nil {
					if now == before {
						last[0], said[0] = i, "another"
					} else {
						last[1], said[1] = i, before
					}
				}
				before = now
			}
			for j, i := range last {
				if i == 0 {
					continue
				}
				if j == 0 {
					same++
				} else {
					wrote++
				}
				metadata := trace.Steps[i].Response.Body["metadata"].(map[string]any)
				now := metadata["resourceVersion"]
				metadata["resourceVersion"] = said[j]
				cut := *trace
				cut.Steps = trace.Steps[:i+1]
				got := replay.RunEngine(&cut, openapi.Builtin())[i]
				metadata["resourceVersion"] = now
				require.Equal(t, replay.Differed, got.Outcome, "%s step %d", trace.Name, i)
				require.Contains(t, got.Detail, "the plan's outcome")
			}
		}
	}
	require.Greater(t, wrote, 40)
	require.Greater(t, same, 10)
}

func TestReport(t *testing.T) {
	results := []replay.Result{
		{Trace: "a.json", Step: 0, Kind: "apply", Outcome: replay.Agreed, Plan: replay.PlanAgrees},
		{Trace: "a.json", Step: 1, Kind: "apply", Outcome: replay.Differed, Detail: "object\n-  a\n+  b\n"},
		{Trace: "b.json", Step: 0, Kind: "update", Outcome: replay.Skipped, Detail: "seldom"},
		{Trace: "b.json", Step: 1, Kind: "update", Outcome: replay.Skipped, Detail: "often",
			Plan: replay.PlanNeedsValidation},
		{Trace: "b.json", Step: 2, Kind: "update", Outcome: replay.Skipped, Detail: "often", Plan: replay.PlanExplained,
			Difference: 28},
	}
	const rest = `a.json step 2 (apply) differs:
  object
  -  a
  +  b

WRITE   AGREED  DIFFERED  SKIPPED
apply   1       1         0
update  0       0         3

SKIPPED  BECAUSE
      2  often
      1  seldom

plans: 1 agree, 0 differ
plans: 1 explained by difference 28
plans: 1 not compared, as values were not validated
5 steps: 1 agreed, 1 differed, 3 skipped
`
	const verbose = `agreed   a.json step 1 (apply)
differed a.json step 2 (apply)
skipped  b.json step 1 (update): seldom
skipped  b.json step 2 (update): often
skipped  b.json step 3 (update): often

`
	for want, report := range map[string]*replay.Report{rest: {}, verbose + rest: {Verbose: true}} {
		report.Add(results[:2]...)
		report.Add(results[2:]...)
		var out strings.Builder
		require.NoError(t, report.Write(&out))
		require.Equal(t, want, out.String())
		require.Equal(t, 1, report.Differed())
	}
}
