// Package benchmarks measures Tenure side by side with upstream: the same body of code, on equal inputs, over both
// engines, in one process.
//
//	go run ./benchmarks/compare            a table, from pairs of runs that follow on each other
//	go run ./benchmarks/server             the API server, with -against stock beside kube-apiserver
//	go test -bench . ./benchmarks          the workloads of the table as Go benchmarks
//	benchmarks/compare-branches.sh BASE    this tree's Tenure against another's, by benchstat
//
// The package itself has only tests. They require that both engines return the same for every workload, so that both
// are known to have done the same work.
package benchmarks
