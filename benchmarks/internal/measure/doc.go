// Package measure times two engines against each other.
//
// Machines are noisy, and their noise is slow: a neighbour, a frequency, a heap
// that has grown. So the engines run in pairs, one right after the other, each
// first in half of the pairs, with a garbage collection before each run; and what
// counts is the median of the pairs' ratios.
package measure
