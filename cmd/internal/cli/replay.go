package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/replay"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func newReplay(env *process.Env) *cobra.Command {
	var schemas []string
	var verbose, server bool
	cmd := &cobra.Command{
		Use:   "replay PATH…",
		Short: "Replay what a real server answered, and compare",
		Long: `Replay sends the writes of recorded traces through the engine and compares what
comes of each with what the server answered: managed fields, byte for byte,
conflicts, and the object. Every apply is planned as well, and the outcome of the
plan compared with what the server did. PATH is a trace, or a folder of traces.

It prints how many steps agreed, differed and were skipped, by kind of write; why
steps were skipped: something above the engine decided them; and every
difference, - for the server's line and + for the engine's. Steps are counted
from 1. The last lines are

  P applies planned
  N steps: A agreed, B differed, C skipped

The schemas are those of the trace's own CustomResourceDefinition, then the
documents that --openapi names, then the embedded ones.

With --server, each trace is replayed on an API server of its own instead, over
HTTP, and the whole of every answer is compared, but for what a server generates.
The server has the namespaces that the trace writes to. There are no plans. Skipped
are three faults of the recorded server that this one does not have, each by name,
values that a server validates in Go code, and custom resources of which the trace
has no definition.

Exit status: 0 when no step differed, 1 when any did, or on any error.`,
		Example: `  tenure replay testdata/traces
  tenure replay --server testdata/traces
  tenure replay --openapi openapi/ --verbose traces/scenarios/001.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := place.NewCatalog()
			if err := c.AddSchemas(env, schemas); err != nil {
				return err
			}
			traces, err := replay.Load(env.Paths(args)...)
			if err != nil {
				return err
			}
			if len(traces) == 0 {
				return errors.New("no traces there")
			}
			report := replay.Report{Verbose: verbose, Unplanned: server}
			for _, trace := range traces {
				if env.Dir != "" {
					if rel, err := filepath.Rel(env.Dir, trace.Name); err == nil {
						trace.Name = rel
					}
				}
				var results []replay.Result
				if server {
					results, err = replay.RunServer(env.Context, trace)
				} else {
					results, err = runTrace(trace, c.Types)
				}
				if err != nil {
					return err
				}
				report.Add(results...)
			}
			if err := report.Write(env.Stdout); err != nil {
				return err
			}
			if report.Differed() > 0 {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&schemas, "openapi", nil,
		"`FILE` or folder with OpenAPI v3 documents; may be given several times")
	cmd.Flags().BoolVar(&server, "server", false, "replay on an API server, over HTTP")
	cmd.MarkFlagsMutuallyExclusive("server", "openapi")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "print a line for every step")
	return cmd
}

// runTrace replays a trace. What nobody recorded, such as an answer without the
// object that it should have, can break the replay; that is the trace's fault.
func runTrace(trace *replay.Trace, types *openapi.Registry) (results []replay.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: can't be replayed: %v", trace.Name, v)
		}
	}()
	return replay.Run(trace, types), nil
}
