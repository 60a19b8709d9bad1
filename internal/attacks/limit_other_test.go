//go:build !unix

package attacks_test

// limitMemory does nothing where there is no such limit; GOMEMLIMIT is set.
func limitMemory(uint64) error { return nil }
