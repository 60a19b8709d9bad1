// Package cli has the commands of tenure: flags, help and exit statuses, with one file for each
// command. Package place knows where objects are, package view how they are printed.
//
// To add a command, write a function like newExtract in a file of its own, and add it to newRoot; a move of
// ownership is a row of moveVerbs.
package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// Process returns the environment of this process, for Main.
func Process() process.Env {
	klog.SetLogger(logr.Discard()) // client-go logs the errors that it returns; see addVerbosity
	return process.Env{Name: filepath.Base(os.Args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
}

// Main runs the command with its arguments, without the name of the program, and returns the exit
// status: 0 for success, 1 for errors. The help of a command says if it has others.
func Main(env process.Env, args []string) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.NewUID == nil {
		env.NewUID = func() string { return string(uuid.NewUUID()) }
	}
	if env.Getenv == nil {
		env.Getenv = os.Getenv
	}
	if env.Context == nil {
		env.Context = context.Background()
	}
	if env.Terminal == nil {
		env.Terminal = view.IsTerminal
	}
	env.CommandLine = commandLine(&env, args)
	env.Color, env.Completes, env.HasHole = colorOf(args), asksForCompletions(args), &atomic.Bool{}
	stdout, stderr := view.Guard(&env, env.Stdout), view.Guard(&env, env.Stderr)
	env.Stdout, env.Stderr = stdout, stderr
	run := execute
	if env.Server != nil {
		if program := env.Server.Program(env.Name); program != nil {
			run = program
		}
	}
	status := run(&env, args)
	for _, stream := range []*printable.Writer{stdout, stderr} {
		if err := stream.Close(); err != nil {
			status = max(status, 1)
		}
	}
	return status
}

// execute runs the command; all fields of e are set.
func execute(e *process.Env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	err := root.Execute()
	if err == nil && e.HasHole.Load() {
		return statusHole
	}
	if err == nil {
		return 0
	}
	status := 1
	var own *statusError
	if errors.As(err, &own) {
		status = own.status
		if err = own.err; err == nil {
			return status
		}
	}
	if !errors.Is(err, errReported) {
		view.Report(e, err)
	}
	return status
}

// Root returns the command, to be described: with manual pages, for example. Main runs it.
func Root(env *process.Env) *cobra.Command { return newRoot(env) }

func newRoot(env *process.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Apply Kubernetes-style objects, and know which manager owns which field",
		Long: `Tenure shows which manager owns which field of Kubernetes objects, shows what an
apply would do, reports conflicts with the ways out of them, and moves ownership
without losing fields.

Commands act on the cluster that kubectl uses. With --store FILE they act on a store
instead, a file in which an API server in this process keeps objects; with --live
FILE, on objects in files, and print the result. apply, replace and delete act on
these only: in a cluster, use plan --apply, kubectl replace and kubectl delete.

Exit status: 0 on success, 1 on a conflict or any error, 4 if the answer lacks what
could not be read, which is named on stderr; plan, conflicts and watch have others,
see their help.`,
		Example: `  # who owns which field, and what would this apply do?
  tenure blame deployment/web -n shop
  tenure plan -f deployment.yaml --field-manager web

  # the same without a cluster
  tenure apply -f deployment.yaml --field-manager web --store shop.db
  tenure blame deployment/web --store shop.db
  kubectl get deploy web -o yaml --show-managed-fields | tenure blame --live -`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagError)
	addColor(env, root)
	group := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, cmd := range commands {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
	}
	group("see", "Show ownership, and what an apply would do:", newPlan(env), newConflicts(env), newPolicy(env),
		newBlame(env), newExtract(env), newWatch(env), newReport(env))
	group("move", "Move ownership:", append(newMoves(env), newHandover(env), newUpgrade(env), newDowngrade(env))...)
	group("write", "Write and list objects:", newApply(env), newReplace(env), newGet(env), newDelete(env),
		newHelm(env))
	checks := []*cobra.Command{newTest(env)}
	if env.Server != nil {
		for _, command := range env.Server.Commands {
			checks = append(checks, command(env))
		}
	}
	group("check", "Test:", checks...)
	root.AddCommand(newVersion(env))
	useProgramName(root, env.Name)
	return root
}
