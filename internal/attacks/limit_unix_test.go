//go:build unix

package attacks_test

import (
	"syscall"
	"time"
)

// limitMemory makes the process fail if it needs more than n bytes of memory.
func limitMemory(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: n, Max: n})
}

// cpuTime returns the CPU time of the process, which does not include other processes.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // impossible for the own process
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
