// Tenure applies Kubernetes-style objects as a server does, shows which manager owns which
// field, and moves ownership: in a cluster, and without one.
//
//	go install -tags grpcnotrace,kustomize_disable_go_plugin_support github.com/tenure-ssa/tenure/cmd/tenure@latest
//	tenure --help
//
// Under the name kubectl-tenure it is a plugin of kubectl.
package main

import (
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/tenure-ssa/tenure/apiserver"

	"github.com/tenure-ssa/tenure/cmd/internal/cli"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func main() {
	// client-go logs the errors that it returns.
	klog.SetLogger(logr.Discard())
	os.Exit(cli.Main(process.Env{
		Name: filepath.Base(os.Args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		AllowPrivileged: apiserver.AllowPrivileged,
	}, os.Args[1:]))
}
