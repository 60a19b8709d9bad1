// Package benchmarks compares the speed of Tenure and upstream: the same code runs with both engines, on equal inputs,
// in one process.
//
//	go run ./benchmarks/compare            a table, from pairs of consecutive runs
//	go run ./benchmarks/server             the API server, with -against stock beside kube-apiserver
//	go test -bench . ./benchmarks          the workloads of the table as Go benchmarks
//	benchmarks/compare-branches.sh BASE    Tenure of this tree beside the revision BASE, by benchstat
//
// The package itself has only tests. They require that both engines return the same result for every workload, so that
// neither engine does less work.
package benchmarks
