//go:build !unix

package attacks_test

import "time"

var start = time.Now()

// limitMemory does nothing on systems without such a limit; GOMEMLIMIT is set instead.
func limitMemory(uint64) error { return nil }

// cpuTime returns wall-clock time on systems without a better measurement.
func cpuTime() time.Duration { return time.Since(start) }
