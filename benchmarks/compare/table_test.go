package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/benchmarks/internal/measure"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, table(&out, []measure.Result{{
		Name:     "Pod: apply",
		Upstream: measure.Cost{Time: 1_300 * time.Microsecond, Allocs: 5263, Bytes: 1_234_567},
		Tenure:   measure.Cost{Time: 26 * time.Microsecond, Allocs: 4.4, Bytes: 184},
		Ratio:    measure.Quartiles{Low: 49.5, Median: 50, High: 101.4},
		Copy:     39 * time.Microsecond, Decode: 520, Compare: 6 * time.Microsecond,
	}}))
	require.Equal(t, `
| workload   | upstream |  Tenure | ratio |  quartiles | allocs, upstream | Tenure | bytes, upstream | Tenure |    copy | decode | compare |
| ---------- | -------: | ------: | ----: | ---------: | ---------------: | -----: | --------------: | -----: | ------: | -----: | ------: |
| Pod: apply |  1.30 ms | 26.0 µs | 50.0× | 49.5×–101× |            5,263 |      4 |         1.23 MB |  184 B | 39.0 µs | 520 ns | 6.00 µs |
`, "\n"+out.String())
}

func TestMeasureNothing(t *testing.T) {
	_, _, err := flags{workload: "no such workload"}.measure()
	require.ErrorContains(t, err, "no workload matches")
	require.Error(t, flags{}.run(nil), "no pairs, no median")
}
