// Kubectl-tenure is a kubectl plugin: the command tenure without an API server.
//
//	go install github.com/tenure-ssa/tenure/cmd/kubectl-tenure@latest
//	kubectl tenure --help
package main

import (
	"os"

	"github.com/tenure-ssa/tenure/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Process(), os.Args[1:])) }
