// Package attacks_test sends hostile input through every package that takes any,
// and holds what it costs against its size. This prints each attack, what it gets
// and what it costs:
//
//	go test ./internal/attacks -run TestAttacks -v
//
// Each row is run at a size and at four times that size, in a child process with
// a small stack and a hard limit on memory: a row that recurses as deep as its
// input, or takes memory without bound, ends the child and fails the test rather
// than the machine.
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
	why  string // what it goes for
	gets string // the result, for readers of the table
	size int    // how large it is first; then four times that; 1 for what has no size
	// build makes the input of a size, and returns what is done with it. That is
	// done several times, so it may change nothing.
	build func(n int) func() error
	// want is part of the error that it has to end with; empty for none.
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

// The bounds on what four times the size may cost. Allocations do not flicker;
// times do, so that only those beyond the floor count, and once in a few tries is
// enough.
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

// ends returns the two ends of what a child wrote: a stack that overflowed fills
// what is between them.
func ends(s string) string {
	const most = 8 << 10
	if len(s) <= 2*most {
		return s
	}
	return s[:most] + "\n…\n" + s[len(s)-most:]
}

// TestTable is what the child runs.
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
				// A large input whose first cost is in bounds need not be measured again: its least cost is, too.
				small, large = a.measure(t, a.size, 2), a.measure(t, growth*a.size, 1+min(try, 1))
				if fault := large.against(small); fault == "" {
					break
				} else if try == tries-1 {
					t.Errorf("at %d: %v; at %d: %v: %s", a.size, small, growth*a.size, large, fault)
				}
			}
			t.Logf("%d: %v; %d: %v", a.size, small, growth*a.size, large)
		})
		runtime.GC() // what one row left must not be another's limit
	}
}

// cost is what one run took.
type cost struct {
	time  time.Duration // of the CPU
	bytes uint64
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f ms, %d KiB", float64(c.time.Microseconds())/1000, c.bytes>>10)
}

// against says what of c is not near linear, when small is a quarter of its size.
func (c cost) against(small cost) string {
	if c.time > floorTime && float64(c.time) > maxTime*float64(max(small.time, time.Microsecond)) {
		return "time is not linear"
	}
	if c.bytes > floorBytes && float64(c.bytes) > maxBytes*float64(max(small.bytes, 1)) {
		return "memory is not linear"
	}
	return ""
}

// measure runs a at a size so many times, and returns the least cost.
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
			break // as precise as it need be
		}
	}
	return least
}
