// Command with applies to a server with kube-apiserver's validation.
package main

import (
	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/kubernetes"

	"github.com/tenure-ssa/tenure/benchmarks/start/program"
)

func main() { program.Run(apiserver.Options{Validation: kubernetes.Validate}) }
