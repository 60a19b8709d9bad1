package apiserver_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// TestRecordedTraces sends the requests of recorded traces and compares the responses with
// those of kube-apiserver: status codes, warnings, objects and managed fields, except for
// generated values.
func TestRecordedTraces(t *testing.T) {
	const root = "../testdata/traces"
	traces, err := recorded.Load(filepath.Join(root, "random"), filepath.Join(root, "scenarios"),
		filepath.Join(root, "topology"))
	require.NoError(t, err)
	require.Len(t, traces, 75)
	used := map[recorded.Exception]int{}
	singles := map[string]recorded.Exception{}
	steps := 0
	for _, trace := range traces {
		name, err := filepath.Rel(root, trace.Name)
		require.NoError(t, err)
		name = strings.TrimSuffix(filepath.ToSlash(name), ".json")
		steps += len(trace.Steps)
		t.Run(name, func(t *testing.T) {
			results, err := replay(t, trace)
			require.NoError(t, err)
			for i, result := range results {
				if result.Exception != recorded.NoException {
					used[result.Exception]++
					if strings.HasPrefix(name, "scenarios/") && result.Exception != recorded.SchemaFault {
						singles[fmt.Sprintf("%s %d", name, i)] = result.Exception
					}
					continue
				}
				q := trace.Steps[i].Request
				require.Empty(t, result.Difference, "step %d: %s: %s %s?%s", i, trace.Steps[i].Note, q.Method, q.Path, q.Query)
			}
			require.Len(t, results, len(trace.Steps))
		})
	}
	require.Greater(t, steps, 700)
	for _, exception := range []recorded.Exception{recorded.ScaleFault, recorded.NullFault, recorded.SchemaFault} {
		require.NotZero(t, used[exception], "no step needs this: %s", exception)
	}
	require.Empty(t, singles, "each exception for a built-in kind has to be reviewed")
}

// replay replays a trace over TLS on a server of its own.
func replay(t *testing.T, trace *recorded.Trace) ([]recorded.Result, error) {
	now := new(atomic.Int64)
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	server, err := apiserver.Start(t.Context(), apiserver.Options{
		Now: func() time.Time { return time.Unix(now.Load(), 0).UTC() }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer server.Close()
	client, err := rest.HTTPClientFor(server.Config())
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	setClock := func(at time.Time) { now.Store(max(now.Load(), at.Unix())) }
	return recorded.OfClient(client, server.URL()).Replay(t.Context(), trace, setClock)
}
