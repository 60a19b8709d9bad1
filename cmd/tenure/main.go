// Tenure applies Kubernetes objects as an API server does, shows which manager owns which field, and moves ownership,
// in a cluster or without one. It contains an API server, which kubectl-tenure does not.
//
//	go install -tags grpcnotrace,kustomize_disable_go_plugin_support github.com/tenure-ssa/tenure/cmd/tenure@latest
//	tenure --help
package main

import (
	"os"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/cli"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

func main() {
	env := cli.Process()
	env.Server, env.AllowPrivileged = server.New(), apiserver.AllowPrivileged
	os.Exit(cli.Main(env, os.Args[1:]))
}
