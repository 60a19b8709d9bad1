//go:build unix

package attacks_test

import (
	"syscall"
	"time"
)

// limitMemory makes the process fail when it takes more memory than n bytes.
func limitMemory(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: n, Max: n})
}

// cpuTime returns the CPU time of the process: what else the machine does is not in it.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // there is no such error for this process
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
