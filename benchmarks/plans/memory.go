package main

import (
	"os"
	"syscall"
)

// residentSet returns the largest resident set of a process, in bytes; 0 where the system does not report it.
func residentSet(state *os.ProcessState) int64 {
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
