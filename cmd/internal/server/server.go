// Package server is the API server in the command tenure: stores, serve, and what envtest of controller-runtime starts.
package server

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/envtest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// New returns the API server for [process.Env].
func New() *process.Server {
	return &process.Server{
		Commands:  []func(*process.Env) *cobra.Command{newServe, envtest.NewCommand},
		Program:   envtest.Program,
		OpenStore: store.OpenAndServe,
	}
}
