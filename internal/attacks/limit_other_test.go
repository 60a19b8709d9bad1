//go:build !unix

package attacks_test

import "time"

var start = time.Now()

// limitMemory does nothing where there is no such limit; GOMEMLIMIT is set.
func limitMemory(uint64) error { return nil }

// cpuTime returns the time on the wall where there is no better one.
func cpuTime() time.Duration { return time.Since(start) }
