package kubernetes

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// TestRecordedTraces replays the recorded traces of built-in kinds with kube-apiserver's validation: reasons, messages
// and causes are as recorded, and no step is excepted.
func TestRecordedTraces(t *testing.T) {
	traces, err := recorded.Load(filepath.Join("..", "..", "testdata", "traces", "scenarios"))
	require.NoError(t, err)
	invalid := 0
	for _, trace := range traces {
		if trace.CRD != nil {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(trace.Name), ".json"), func(t *testing.T) {
			results, err := recorded.Replay(t.Context(), trace, apiserver.Options{Validation: Validate})
			require.NoError(t, err)
			require.Len(t, results, len(trace.Steps))
			for i, result := range results {
				q := trace.Steps[i].Request
				if result.Exception == recorded.SchemaFault {
					continue // a correction
				}
				require.Empty(t, result.Difference, "step %d: %s: %s %s?%s", i, trace.Steps[i].Note, q.Method, q.Path, q.Query)
				if trace.Steps[i].Response.Code == 422 {
					invalid++
				}
			}
		})
	}
	require.NotZero(t, invalid)
}
