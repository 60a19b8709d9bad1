package kubernetes

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/internal/exchanges"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// TestRecordedTraces replays the recorded traces with kube-apiserver's validation: reasons, messages and causes are as
// recorded. Steps are excepted only where this server differs on purpose, and none because of validation.
func TestRecordedTraces(t *testing.T) {
	root := filepath.Join("..", "..", "testdata", "traces")
	traces, err := recorded.Load(filepath.Join(root, "random"), filepath.Join(root, "scenarios"),
		filepath.Join(root, "topology"))
	require.NoError(t, err)
	require.Len(t, traces, 75)
	invalid := 0
	for _, trace := range traces {
		t.Run(strings.TrimSuffix(filepath.Base(trace.Name), ".json"), func(t *testing.T) {
			results, err := recorded.Replay(t.Context(), trace, apiserver.Options{Validation: Validate})
			require.NoError(t, err)
			require.Len(t, results, len(trace.Steps))
			for i, result := range results {
				q := trace.Steps[i].Request
				switch result.Exception {
				case recorded.SchemaFault, recorded.ScaleFault, recorded.NullFault:
					continue // corrections
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

// TestRecordedExchanges replays the recorded exchanges in the same way.
func TestRecordedExchanges(t *testing.T) {
	exchanges.Run(t, filepath.Join("..", "testdata", "rest"), apiserver.Options{Validation: Validate})
}
