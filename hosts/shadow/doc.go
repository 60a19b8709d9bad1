// Package shadow computes writes that upstream answers by Tenure as well, and reports where
// the two differ.
//
// It never changes an answer and never waits: of a sample of writes, what goes in and what
// comes out is copied into a queue, and a write that finds the queue full is dropped and
// counted. One goroutine takes writes from the queue, computes them by Tenure on upstream's
// clock, and compares objects, managed fields and errors. A difference is counted in a metric,
// labelled with its number in doc/differences.md or "unexplained", and logged with the path
// of a trace, which `cmd/replay` takes.
//
// The cost is bounded: on the path of a request by the sample rate (a copy of three objects of
// each sampled write), in memory by the length of the queue, in CPU by one goroutine, on disk
// by the number of traces.
package shadow
