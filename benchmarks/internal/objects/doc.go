// Package objects makes the objects that the benchmarks write to: as a cluster
// has them, with defaults and a full status, but without managed fields. Equal
// calls return equal objects that share nothing.
package objects
