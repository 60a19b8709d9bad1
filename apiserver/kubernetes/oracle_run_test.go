package kubernetes

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// progress is what all runs of a fuzzer with ORACLE_TIME did for one kind, and one subresource.
type progress struct {
	next     int64 // the first seed that did not run
	compared int64 // pairs that upstream did not refuse
	seconds  float64
}

// fuzz calls compare for each seed of a run: those that SEEDS names; or the next that did not run yet, for as long as
// ORACLE_TIME says; or some for CI. compare reports whether there was something to compare. share is the part of the
// kind's time that these cases get.
func fuzz(t *testing.T, number int64, share float64, compare func(t *testing.T, seed int64) (compared bool)) {
	if text := os.Getenv("ORACLE_TIME"); text != "" {
		limit, err := time.ParseDuration(text)
		require.NoError(t, err)
		fuzzFor(t, time.Duration(float64(limit)*share), compare)
		return
	}
	first, last, compared := int64(0), number, int64(0)
	if text := os.Getenv("SEEDS"); text != "" {
		from, count, _ := strings.Cut(text, ":")
		var err error
		first, err = strconv.ParseInt(from, 10, 64)
		require.NoError(t, err)
		number, err = strconv.ParseInt(count, 10, 64)
		require.NoError(t, err)
		last = first + number
	}
	for seed := first; seed < last; seed++ {
		if compare(t, seed) {
			compared++
		}
	}
	require.Greater(t, 4*compared, last-first, "upstream refused most objects")
}

// fuzzFor is fuzz for so much CPU time. A seed that failed is the first of the next run.
func fuzzFor(t *testing.T, limit time.Duration, compare func(t *testing.T, seed int64) (compared bool)) {
	all := readProgress(t)
	p := all[t.Name()]
	start := cpuTime()
	t.Cleanup(func() {
		p.seconds += (cpuTime() - start).Seconds()
		all[t.Name()] = p
		writeProgress(t, all)
	})
	for cpuTime()-start < limit {
		if compare(t, p.next) {
			p.compared++
		}
		p.next++
	}
}

// progressFile has a line for each fuzzer, kind and subresource: its name, how many seeds ran, how many of them
// compared something, and the seconds of CPU that it took.
const progressFile = "testdata/oracle.txt"

func readProgress(t *testing.T) map[string]progress {
	out := map[string]progress{}
	data, err := os.ReadFile(progressFile)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for line := range strings.Lines(string(data)) {
		var name string
		var p progress
		_, err := fmt.Sscan(line, &name, &p.next, &p.compared, &p.seconds)
		require.NoError(t, err, line)
		out[name] = p
	}
	return out
}

func writeProgress(t *testing.T, all map[string]progress) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		fmt.Fprintf(&b, "%s %d %d %.1f\n", name, p.next, p.compared, p.seconds)
	}
	require.NoError(t, os.WriteFile(progressFile, []byte(b.String()), 0o644))
}
