//go:build !unix

package kubernetes

import "time"

var started = time.Now()

// cpuTime returns the time since the start: this system does not tell how much of it was the process's.
func cpuTime() time.Duration { return time.Since(started) }
