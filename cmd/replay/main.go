// Replay replays recorded writes to kube-apiserver, and compares.
//
//	go run ./cmd/replay [--openapi FILE] [--verbose] PATH…
//
// It sends the writes of recorded traces through the engine and compares the result of each with the recorded response:
// managed fields, byte for byte, conflicts, and the object. Every apply is planned before it is sent, and what the plan
// says compared with what the server did: created, changed, ownership only, unchanged, conflict, precondition failed or
// refused. No plan is left out: where kube-apiserver fails an apply and Tenure does not, as a difference of
// doc/differences.md says, its response must be the one that the difference predicts. PATH is a trace, or a folder of
// traces.
//
// It prints how many steps agreed, differed and were skipped, by kind of write; the reasons of skips, which are
// decisions above the engine; and every difference, with - for the server's line and + for the engine's.
//
// Defaults are those of the version of Kubernetes that the trace's server has, by the feature gates of that version.
// Schemas are those of the trace's own CustomResourceDefinition, then of the documents of --openapi, then the embedded
// ones.
//
// Exit status: 0 if no step differed, 1 if any did, or on any error.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	feature "k8s.io/apiserver/pkg/util/feature"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/replay"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

var errDiffered = errors.New("steps differed")

func run(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	schemas := flags.StringArray("openapi", nil, "`FILE` or folder with OpenAPI v3 documents; may be given several times")
	verbose := flags.Bool("verbose", false, "print a line for every step")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := place.NewCatalog()
	if err := c.AddSchemas(&process.Env{}, *schemas); err != nil {
		return err
	}
	traces, err := replay.Load(flags.Args()...)
	if err != nil {
		return err
	}
	if len(traces) == 0 {
		return errors.New("no traces found")
	}
	report := replay.Report{Verbose: *verbose}
	for _, trace := range traces {
		results, err := runTrace(trace, c.Types)
		if err != nil {
			return err
		}
		report.Add(results...)
	}
	if err := report.Write(out); err != nil {
		return err
	}
	if report.Differed() > 0 {
		return errDiffered
	}
	return nil
}

// runTrace replays a trace. A panic is the fault of a malformed trace, such as a response without the
// object that it should have, and becomes an error.
func runTrace(trace *replay.Trace, types *openapi.Registry) (results []replay.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: the trace can't be replayed: %v", trace.Name, v)
		}
	}()
	if err := emulate(trace.Server); err != nil {
		return nil, fmt.Errorf("%s: %w", trace.Name, err)
	}
	return replay.RunEngine(trace, types), nil
}

// emulate switches this process to the feature gates of a server such as "kube-apiserver v1.36.3", or to those of
// openapi.KubernetesVersion if server names no version.
func emulate(server string) error {
	_, text, _ := strings.Cut(server, " ")
	v, err := version.ParseMajorMinor(text)
	if err != nil {
		v = version.MustParseMajorMinor(openapi.KubernetesVersion)
	}
	return feature.DefaultMutableFeatureGate.SetEmulationVersion(v)
}
