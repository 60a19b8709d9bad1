//go:build unix

package kubernetes

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process: what else the machine does is not in it.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // there is no such error for this process
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
