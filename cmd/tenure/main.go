// Tenure applies Kubernetes-style objects as a server does, without one.
//
//	go install github.com/tenure-ssa/tenure/cmd/tenure@latest
//	tenure --help
package main

import (
	"os"
	"path/filepath"

	"github.com/tenure-ssa/tenure/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.Env{Name: filepath.Base(os.Args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, os.Args[1:]))
}
