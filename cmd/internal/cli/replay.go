package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/apiserver"

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
		Short: "Replay recorded writes to kube-apiserver, and compare",
		Long: `Replay sends the writes of recorded traces through the engine and compares the
result of each with the recorded response: managed fields, byte for byte, conflicts,
and the object. Every apply is planned before it is sent, and what the plan says
compared with what the server did: created, changed, ownership only, unchanged,
conflict, precondition failed or refused. No plan is left out: where kube-apiserver
fails an apply and Tenure does not, as a difference of doc/differences.md says, its
response must be the one that the difference predicts. PATH is a trace, or a folder
of traces.

It prints how many steps agreed, differed and were skipped, by kind of write; the
reasons of skips, which are decisions above the engine; and every difference, with -
for the server's line and + for the engine's. Steps are counted from 1. The last
lines are

  plans: P agree, D differ
  plans: E explained by difference F
  N steps: A agreed, B differed, C skipped

Schemas are those of the trace's own CustomResourceDefinition, then of the documents
of --openapi, then the embedded ones.

With --server, each trace is replayed on an API server of its own instead, over
HTTP, and whole responses are compared, except for what a server generates. The
server has the namespaces that the trace writes to. An apply is planned on the
object that is read from this server, and compared with what this server does.
Steps are skipped for three faults of the recorded server that this one does not
have, each by name, for values that kube-apiserver validates in Go code, and for
custom resources without a definition in the trace.

Exit status: 0 if no step differed, 1 if any did, or on any error.`,
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
				return errors.New("no traces found")
			}
			report := replay.Report{Verbose: verbose}
			for _, trace := range traces {
				if env.Dir != "" {
					if rel, err := filepath.Rel(env.Dir, trace.Name); err == nil {
						trace.Name = rel
					}
				}
				var results []replay.Result
				if server {
					results, err = replay.RunServer(env.Context, trace, apiserver.Options{Validation: env.Validation})
				} else {
					results, err = runTrace(trace, c.Types, env.Validation)
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

// runTrace replays a trace. A panic is the fault of a malformed trace, such as a response without the
// object that it should have, and becomes an error.
func runTrace(
	trace *replay.Trace,
	types *openapi.Registry,
	validation replay.Validation,
) (results []replay.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: the trace can't be replayed: %v", trace.Name, v)
		}
	}()
	return replay.RunEngine(trace, types, validation), nil
}
