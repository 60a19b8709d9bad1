package replay_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver"

	"github.com/tenure-ssa/tenure/cmd/internal/replay"
)

// A server answers as recorded, and what is altered in a recorded answer makes the
// step differ: the whole of it is compared. That all traces agree is tested with the
// server.
func TestServer(t *testing.T) {
	loaded, err := replay.Load(filepath.Join(traces, "topology"))
	require.NoError(t, err)
	more, err := replay.Load(filepath.Join(traces, "random"))
	require.NoError(t, err)
	loaded = append(loaded, more[:3]...)
	alterations := []alteration{
		entry(func(e map[string]any) bool { return alterText(e, "time", lastDigitOfSeconds) }),
		entry(func(e map[string]any) bool { return alterFieldName(e["fieldsV1"]) }),
		ofAnswer(alterOrder), ofAnswer(alterCount), alterValue,
	}
	altered := make([]int, len(alterations))
	for _, trace := range loaded {
		results, err := replay.RunServer(t.Context(), trace, apiserver.Options{})
		require.NoError(t, err)
		require.Len(t, results, len(trace.Steps))
		for _, r := range results {
			require.NotEqual(t, replay.Differed, r.Outcome, "%s step %d: %s", r.Trace, r.Step, r.Detail)
			require.Equal(t, strings.HasPrefix(r.Kind, "apply"), r.Plan == replay.PlanAgrees, "%s step %d", r.Trace, r.Step)
		}
		for which, alter := range alterations {
			for i := range trace.Steps {
				step := &trace.Steps[i]
				if results[i].Outcome != replay.Agreed || results[i].Kind != "apply" {
					continue
				}
				recorded := step.Response.Body
				answer := runtime.DeepCopyJSON(recorded)
				intent, _ := step.Request.Body.(map[string]any)
				if !alter(intent, answer) {
					continue
				}
				altered[which]++
				step.Response.Body = answer
				got, err := replay.RunServer(t.Context(), trace, apiserver.Options{})
				step.Response.Body = recorded
				require.NoError(t, err)
				require.Len(t, got, len(trace.Steps))
				require.Equal(t, replay.Differed, got[i].Outcome, "%s step %d, alteration %d", trace.Name, i, which)
				require.NotEmpty(t, got[i].Detail)
				for _, later := range got[i+1:] {
					require.Equal(t, replay.Skipped, later.Outcome)
				}
				break
			}
		}
	}
	for which, n := range altered {
		require.NotZero(t, n, "no trace has what alteration %d alters", which)
	}
}
