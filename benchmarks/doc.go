// Package benchmarks measures Tenure side by side with upstream: the same body of
// code, on equal inputs, over both engines, in one process.
//
//	go run ./benchmarks/compare           a table, from interleaved pairs of runs
//	go run ./benchmarks/compare -growth   cost against size and number of managers
//	go run ./benchmarks/compare -memory   what decoded managed fields weigh
//	go run ./benchmarks/compare -parallel what one and two goroutines do
//	go run ./benchmarks/compare -attack   a cache that is sent ever new FieldsV1
//	go run ./benchmarks/server            the API server: start, writes, memory
//	go run ./benchmarks/server -help      the API server beside kube-apiserver; doc/server.svg
//	go run ./benchmarks/chart             draws doc/growth.svg
//	go test -bench . ./benchmarks/...     the same workloads as Go benchmarks
//	benchmarks/compare-branches.sh BASE   this tree's Tenure against another's
//
// The package itself has only tests: every workload's results must be the same
// with both engines, so that both are known to have done the same work.
package benchmarks
