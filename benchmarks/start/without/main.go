// Command without applies to a server that validates built-in kinds by their schemas alone.
package main

import (
	"github.com/tenure-ssa/tenure/apiserver"

	"github.com/tenure-ssa/tenure/benchmarks/start/program"
)

func main() { program.Run(apiserver.Options{}) }
