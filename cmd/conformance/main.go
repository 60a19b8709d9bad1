// Conformance checks the server-side apply of an API server: it repeats writes that were recorded with kube-apiserver,
// and compares the responses.
//
//	go run github.com/tenure-ssa/tenure/cmd/conformance@latest --kubeconfig FILE
//
// It creates namespaces ssa-conformance-* and CustomResourceDefinitions in the groups trace.example.dev and
// topology.example.dev, and deletes them at the end, also when it is interrupted. It does not change existing objects.
// Use it on a server without controllers, because controllers write to objects too.
//
// It prints the differences, with the rules of doc/spec.md that the server breaks. It can also write the differences
// as JUnit XML and as an HTML page.
//
//	go run github.com/tenure-ssa/tenure/cmd/conformance@latest definitions DIR|FILE…|--kubeconfig FILE
//
// This subcommand compares Tenure with upstream. It makes random writes to objects of CustomResourceDefinitions with
// both engines, without a server. It prints counts for each definition, and the shortest history with a difference that
// is not listed in doc/differences.md.
//
//	go run github.com/tenure-ssa/tenure/cmd/conformance@latest resources --kubeconfig FILE GROUP|RESOURCE.GROUP…
//
// This subcommand creates random objects from the OpenAPI document of an API server, sends random writes of these
// objects to the server, and compares the responses with the results of upstream's engine in this process. It compares
// objects, managed fields, conflicts, and whether a write is rejected. GROUP selects the group's namespaced resources;
// core is the group without a name. Cluster-scoped resources must be named one by one, because some of them change how
// a cluster works. Objects are created in a new namespace, or in the namespace that --namespace names.
//
// Exit status: 0 if there is no difference, 1 if there is one, 2 if some traces could not be run, something could not
// be deleted, or a definition could not be compared.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/cmd/internal/conformance"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/document"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	failed, err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

// run runs the program. failed reports whether there was a difference.
func run(ctx context.Context, args []string, stdout io.Writer) (failed bool, err error) {
	if len(args) > 0 && args[0] == "definitions" {
		return runDefinitions(ctx, args[1:], stdout)
	}
	if len(args) > 0 && args[0] == "resources" {
		return runResources(ctx, args[1:], stdout)
	}
	flags := pflag.NewFlagSet("conformance", pflag.ContinueOnError)
	load := loader(flags)
	junit := flags.String("junit", "", "write the report as JUnit XML to `FILE`")
	html := flags.String("html", "", "write the report as an HTML page to `FILE`")
	selected := flags.String("run", "", "run only traces whose name matches `REGEXP`")
	keep := flags.Bool("keep", false, "do not delete the namespaces and CustomResourceDefinitions at the end")
	verbose := flags.Bool("verbose", false, "print a line for each trace, and responses that differ as a diff")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() > 0 {
		return false, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	options := conformance.Options{Keep: *keep, NextSecond: func() { time.Sleep(time.Second) }}
	if options.Select, err = regexp.Compile(*selected); err != nil {
		return false, fmt.Errorf("--run: %w", err)
	}
	config, err := load().ClientConfig()
	if err != nil {
		return false, err
	}
	report, err := conformance.Run(ctx, config, options)
	if report == nil {
		return false, err
	}
	err = errors.Join(err, report.Write(stdout, *verbose))
	err = errors.Join(err, write(*junit, report.WriteJUnit), write(*html, report.WriteHTML))
	counts := report.Counts()
	if err == nil && counts["passed"]+counts["failed"] == 0 {
		err = errors.New("no trace ran")
	}
	return counts["failed"] > 0, err
}

// loader adds the flags that select a kubeconfig.
func loader(flags *pflag.FlagSet) func() clientcmd.ClientConfig {
	loading := clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&loading.ExplicitPath, "kubeconfig", "", "`FILE` of the server's kubeconfig")
	var overrides clientcmd.ConfigOverrides
	clientcmd.BindOverrideFlags(&overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	return func() clientcmd.ClientConfig {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, &overrides)
	}
}

// runResources compares a server with upstream. failed reports whether there was a difference.
func runResources(ctx context.Context, args []string, stdout io.Writer) (failed bool, err error) {
	flags := pflag.NewFlagSet("conformance resources", pflag.ContinueOnError)
	load := loader(flags)
	var from conformance.ServedOptions
	options := conformance.DefinitionsOptions{Parallel: 1}
	flags.BoolVar(&from.Keep, "keep", false, "do not delete the objects and the namespace at the end")
	flags.Uint64Var(&options.Seed, "seed", 1, "`NUMBER` of the first random history")
	flags.IntVar(&options.Count, "count", 50, "number of histories to run for each resource")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if from.Names = flags.Args(); len(from.Names) == 0 {
		return false, errors.New("expected API groups or resources")
	}
	if flag := flags.Lookup("namespace"); flag.Changed {
		from.Namespace = flag.Value.String()
	}
	config, err := load().ClientConfig()
	if err != nil {
		return false, err
	}
	resources, err := conformance.RunServed(ctx, config, from, options)
	if resources == nil {
		return false, err
	}
	failed, failure := resources.Write(stdout)
	return failed, errors.Join(err, failure, ctx.Err())
}

// runDefinitions compares the engines. failed reports whether there was a difference that doc/differences.md does not
// list.
func runDefinitions(ctx context.Context, args []string, stdout io.Writer) (failed bool, err error) {
	flags := pflag.NewFlagSet("conformance definitions", pflag.ContinueOnError)
	var options conformance.DefinitionsOptions
	kubeconfig := flags.String("kubeconfig", "", "`FILE` of a cluster to take all CustomResourceDefinitions from")
	flags.Uint64Var(&options.Seed, "seed", 1, "`NUMBER` of the first random history")
	flags.IntVar(&options.Count, "count", 100, "number of histories to run for each definition")
	flags.DurationVar(&options.Duration, "duration", 0, "run histories for this time in total, instead of --count")
	flags.IntVar(&options.Parallel, "parallel", runtime.GOMAXPROCS(0), "number of histories to run at the same time")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if (*kubeconfig == "") == (flags.NArg() == 0) {
		return false, errors.New("expected either files and folders or --kubeconfig")
	}
	var documents []document.Document
	if *kubeconfig == "" {
		documents, err = manifest.ReadFiles(&process.Env{Stderr: os.Stderr}, flags.Args()...)
	} else {
		var config *rest.Config
		if config, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err == nil {
			documents, err = conformance.ListDefinitions(ctx, config)
		}
	}
	if err != nil {
		return false, err
	}
	definitions := conformance.NewDefinitions(documents)
	definitions.Run(ctx, options)
	failed, err = definitions.Write(stdout)
	return failed, errors.Join(err, ctx.Err()) // after an interrupt, the results so far are printed
}

// write creates a file, and calls to(file). If the name is empty, write does nothing.
func write(name string, to func(io.Writer) error) (err error) {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return to(file)
}
