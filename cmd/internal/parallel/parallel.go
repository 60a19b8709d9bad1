// Package parallel runs functions at the same time, within a bound.
package parallel

import (
	"runtime"
	"sync"
)

// Do calls do for the numbers below count, at most limit of them at a time, and returns when all have
// returned.
func Do(limit, count int, do func(i int)) {
	if limit = min(limit, count); limit <= 1 {
		for i := range count {
			do(i)
		}
		return
	}
	var wait sync.WaitGroup
	next := make(chan int)
	for range limit {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wait.Wait()
}

// Cores is the limit of what only computes.
func Cores() int { return runtime.GOMAXPROCS(0) }
