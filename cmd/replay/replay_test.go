package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

func load(t *testing.T, folder string) []*recorded.Trace {
	traces, err := recorded.Load(filepath.Join("../../testdata/traces", folder))
	require.NoError(t, err)
	return traces
}

// TestTraces replays the recorded traces. Every apply is planned; its outcome must equal the server's, unless the
// server rejects values. For each reason that explains different responses, the number of steps is checked, so that a
// new difference is noticed.
func TestTraces(t *testing.T) {
	for _, row := range []struct {
		folder            string
		agreed            int
		explained         map[recorded.Exception]int
		plans, uncompared int
	}{
		{"scenarios", 191, map[recorded.Exception]int{recorded.SchemaFault: 12}, 142, 3},
		{"topology", 96, map[recorded.Exception]int{}, 72, 0},
		{"random", 472, map[recorded.Exception]int{recorded.NullFault: 3, recorded.ScaleFault: 7}, 320, 0},
	} {
		t.Run(row.folder, func(t *testing.T) {
			var report Report
			explained, applies := map[recorded.Exception]int{}, 0
			for _, trace := range load(t, row.folder) {
				results, err := replay(t.Context(), trace, nil)
				require.NoError(t, err)
				report = append(report, results...)
			}
			for _, result := range report {
				if result.outcome() == "explained" {
					explained[result.Exception]++
				}
				if strings.HasPrefix(result.Kind, "apply") {
					applies++
				}
			}
			agree, differ, uncompared := report.Plans()
			require.Equal(t, []int{row.agreed, row.plans, 0, row.uncompared},
				[]int{report.Count("", "agreed"), agree, differ, uncompared})
			require.Equal(t, applies, agree+uncompared)
			require.Equal(t, row.explained, explained)
			require.Len(t, report, report.Count("", "agreed")+report.Count("", "explained"))
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// TestPlansDiffer checks that plans are compared: the last apply of each trace is sent with another option than it
// was planned with.
func TestPlansDiffer(t *testing.T) {
	for option, row := range map[string]struct{ value, want string }{
		"force":        {"false", "the plan's outcome is changed, the server's conflict"},
		"fieldManager": {"another", "the plan's outcome is unchanged, the server's ownership only"},
	} {
		found := 0
		for _, trace := range load(t, "scenarios") {
			left := 0
			for i := range trace.Steps {
				if strings.HasPrefix(kindOf(&trace.Steps[i]), "apply") {
					left++
				}
			}
			results, err := replayWith(t.Context(), trace, nil, func(server http.RoundTripper) http.RoundTripper {
				return roundTrip(func(q *http.Request) (*http.Response, error) {
					if q.Header.Get("Content-Type") == string(types.ApplyPatchType) {
						left--
					}
					if query := q.URL.Query(); query.Has(option) && left == 0 {
						query.Set(option, row.value)
						q = q.Clone(q.Context())
						q.URL.RawQuery = query.Encode()
					}
					return server.RoundTrip(q)
				})
			})
			require.NoError(t, err)
			for _, result := range results {
				if strings.Contains(result.Plan.Difference(), row.want) {
					require.Equal(t, "differed", result.outcome())
					found++
				}
			}
		}
		require.Positive(t, found, option)
	}
}

func TestReport(t *testing.T) {
	report := Report{
		{Trace: "a.json", Step: 0, Kind: "apply", Plan: &Plan{Planned: created, Served: created}},
		{Trace: "a.json", Step: 1, Kind: "apply", Result: recorded.Result{Difference: "a\nb"}},
		{Trace: "a.json", Step: 2, Kind: "apply", Plan: &Plan{Planned: created, Served: refused}},
		{Trace: "b.json", Step: 0, Kind: "update", Skipped: "seldom"},
		{Trace: "b.json", Step: 1, Kind: "update", Skipped: "often"},
		{Trace: "b.json", Step: 2, Kind: "update", Skipped: "often", Plan: &Plan{Served: notValidated}},
		{Trace: "b.json", Step: 3, Kind: "apply", Result: recorded.Result{Difference: "a", Exception: "b"}},
	}
	const rest = `a.json step 2 (apply) differs:
  a
  b

a.json step 3 (apply) differs:
  the plan's outcome is created, the server's refused; the plan's error: <nil>

WRITE   AGREED  DIFFERED  EXPLAINED  SKIPPED
apply   1       2         1          0
update  0       0         0          3

    2 skipped: often
    1 explained: b
    1 skipped: seldom
plans: 1 agree, 1 differ
plans: 1 not compared, as only a server validates values
7 steps: 1 agreed, 2 differed, 1 explained, 3 skipped
`
	var out strings.Builder
	require.NoError(t, report.Write(&out, false))
	require.Equal(t, rest, out.String())
	out.Reset()
	require.NoError(t, report[:1].Write(&out, true))
	require.True(t, strings.HasPrefix(out.String(), "agreed    a.json step 1 (apply)\n"), out.String())
}
