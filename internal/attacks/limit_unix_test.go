//go:build unix

package attacks_test

import "syscall"

// limitMemory makes the process fail when it takes more memory than n bytes.
func limitMemory(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: n, Max: n})
}
