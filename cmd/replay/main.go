// Replay replays recorded writes to kube-apiserver, and compares the responses.
//
//	go run ./cmd/replay [--verbose] [--schema FILE]… PATH…
//
// It sends the requests of each trace to a new server in this process, with the recorded times, and compares the
// responses with the recorded responses. It compares status codes, warnings, complete objects with their managed
// fields, and errors, but no generated values. Before it sends an apply, it also plans the apply on the server's
// current object, as tenure plan does without dry runs, and compares the plan's outcome with the server's. The possible
// outcomes are: created, changed, ownership only, unchanged, conflict, precondition failed, and refused. PATH is a
// trace, or a folder with traces.
//
// For each kind of write, it prints how many steps agreed, differed, were explained and were skipped. It also prints
// every difference, and the reasons for explained and skipped steps, such as an error of kube-apiserver that
// doc/differences.md lists. A trace ends with its first difference, because later steps depend on it.
//
// Defaults are set as in the Kubernetes version of the trace's server, with the feature gates of that version. A trace
// that was recorded next to upstream's field manager (doc/embedding.md) is replayed by the engine alone. If the server
// in this process does not serve a kind, and --schema names a file with the kind's OpenAPI v3 document or definition,
// the engine alone replays the applies to this kind.
//
// Exit status: 0 if no step differed, 1 if a step differed, or on any error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

func main() {
	klog.SetLogger(logr.Discard()) // the server logs allocations
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	schemas := flags.StringArray("schema", nil,
		"`FILE` or folder with OpenAPI v3 documents or CustomResourceDefinitions of kinds that traces do not define")
	verbose := flags.Bool("verbose", false, "print a line for every step")
	if err := flags.Parse(args); err != nil {
		return err
	}
	traces, err := recorded.Load(flags.Args()...)
	if err != nil {
		return err
	}
	if len(traces) == 0 {
		return errors.New("no traces found")
	}
	var report Report
	for _, trace := range traces {
		results, err := replay(context.Background(), trace, *schemas)
		if err != nil {
			return fmt.Errorf("%s: %w", trace.Name, err)
		}
		report = append(report, results...)
	}
	if err := report.Write(out, *verbose); err != nil {
		return err
	}
	if report.Count("", "differed") > 0 {
		return errors.New("steps differed")
	}
	return nil
}
