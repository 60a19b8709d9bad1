// Package attacks_test sends hostile input through every package that accepts input, and compares the cost with the
// size of the input. This command prints each attack, its result and its cost:
//
//	go test ./internal/attacks -run TestAttacks -v
//
// Each row runs at one size and at four times that size, in a child process with a small stack and a hard limit on
// memory. A row that recurses as deep as its input, or allocates memory without bound, ends the child process and fails
// the test, but does not exhaust the machine.
package attacks_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An attack is one row of the table.
type attack struct {
	name string
	why  string // what it attacks
	gets string // the result, for readers of the table
	size int    // the first size; the second is four times as large; 1 for an input without a size
	// build makes the input of a size, and returns the function to run. That function runs several times, so it must
	// not change the input.
	build func(n int) func() error
	// want is a part of the error that the function must return; empty if it must succeed.
	want string
}

// table lists all rows.
func table() []attack {
	var out []attack
	for _, rows := range [][]attack{
		nesting, loops, duplicates, keys, numbers, values, metadata, owners, changes, schemas, printing,
	} {
		out = append(out, rows...)
	}
	return out
}

// Bounds on the cost at four times the size. Allocations are reproducible; times are not, so only times above the floor
// are checked, and a row passes if one of a few tries is within the bounds.
const (
	growth      = 4
	maxTime     = 12.0
	maxBytes    = 6.0
	floorTime   = 20 * time.Millisecond
	floorBytes  = 2 << 20
	tries       = 4
	softLimit   = 1 << 30
	hardLimit   = 3 << 30
	stackLimit  = 64 << 20
	childMarker = "TENURE_ATTACKS_CHILD"
)

// raceDetector reports whether the race detector is on.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestAttacks runs the table in a child process with limits.
func TestAttacks(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector needs more memory than the limit, and changes every cost")
	}
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTable$", "-test.v", "-test.timeout=480s")
	cmd.Env = append(os.Environ(), childMarker+"=1", fmt.Sprintf("GOMEMLIMIT=%d", softLimit))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, ends(out.String()))
	}
	if testing.Verbose() {
		t.Log(out.String())
	}
}

// ends returns the beginning and the end of a child's output, because the trace of a stack overflow fills the middle.
func ends(s string) string {
	const most = 8 << 10
	if len(s) <= 2*most {
		return s
	}
	return s[:most] + "\n…\n" + s[len(s)-most:]
}

// TestTable is the test that the child process runs.
func TestTable(t *testing.T) {
	if os.Getenv(childMarker) == "" {
		t.Skip("run by TestAttacks, within limits")
	}
	debug.SetMaxStack(stackLimit)
	require.NoError(t, limitMemory(hardLimit))
	names := map[string]bool{}
	for _, a := range table() {
		require.False(t, names[a.name], "%s stands twice", a.name)
		names[a.name] = true
		t.Run(a.name, func(t *testing.T) {
			t.Logf("%s: %s", a.why, a.gets)
			if a.size == 1 {
				t.Log(a.measure(t, 1, 1))
				return
			}
			var small, large cost
			for try := range tries {
				// If the first cost of a large input is within the bounds, so is its least cost, and no second run is
				// needed.
				small, large = a.measure(t, a.size, 2), a.measure(t, growth*a.size, 1+min(try, 1))
				if fault := large.against(small); fault == "" {
					break
				} else if try == tries-1 {
					t.Errorf("at %d: %v; at %d: %v: %s", a.size, small, growth*a.size, large, fault)
				}
			}
			t.Logf("%d: %v; %d: %v", a.size, small, growth*a.size, large)
		})
		runtime.GC() // garbage of one row must not affect the memory limit of the next
	}
}

// cost is the cost of one run.
type cost struct {
	time  time.Duration // CPU time
	bytes uint64
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f ms, %d KiB", float64(c.time.Microseconds())/1000, c.bytes>>10)
}

// against describes which part of c is not nearly linear, where small is the cost of a quarter of the size.
func (c cost) against(small cost) string {
	if c.time > floorTime && float64(c.time) > maxTime*float64(max(small.time, time.Microsecond)) {
		return "time is not linear"
	}
	if c.bytes > floorBytes && float64(c.bytes) > maxBytes*float64(max(small.bytes, 1)) {
		return "memory is not linear"
	}
	return ""
}

// measure runs a several times at a size, and returns the least cost.
func (a attack) measure(t *testing.T, n, runs int) (least cost) {
	t.Helper()
	run := a.build(n)
	var before, after runtime.MemStats
	for i := range runs {
		runtime.ReadMemStats(&before)
		start := cpuTime()
		err := run()
		c := cost{time: cpuTime() - start}
		runtime.ReadMemStats(&after)
		c.bytes = after.TotalAlloc - before.TotalAlloc
		if a.want == "" {
			require.NoError(t, err, a.why)
		} else {
			require.ErrorContains(t, err, a.want, a.why)
			require.Less(t, len(err.Error()), 16<<20, "the text of an error is bounded")
		}
		if i == 0 || c.time < least.time {
			least.time = c.time
		}
		if i == 0 || c.bytes < least.bytes {
			least.bytes = c.bytes
		}
		if c.time > time.Second {
			break // precise enough
		}
	}
	return least
}
