// Package cli has the commands of tenure: flags, help and exit statuses, in files that are named after the commands.
// Package place reads and writes the objects of a place, which is a cluster, a store or a set of files; package view
// prints them.
//
// To add a command, write a function like newExtract in a file of its own, and add it to Root. For a command that makes
// a single move of ownership, add a row to moveVerbs instead. A function that adds flags also registers their checks
// (checkBefore). Code that needs objects runs in placeFlags.withPlace, objectFlags.withObjects or
// intentFlags.withIntents, which open the place.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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
	klog.SetLogger(logr.Discard()) // client-go logs errors that it also returns; see addVerbosity
	return process.Env{Name: filepath.Base(os.Args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
}

// Main runs a command line and returns the exit status: 0 for success, 1 for errors. The help texts of commands
// document other statuses. args does not contain the name of the program.
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
	env.Color, env.Completes, env.IsIncomplete = colorOf(args), asksForCompletions(args), &atomic.Bool{}
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

// execute runs the command. All fields of e must be set.
func execute(e *process.Env, args []string) int {
	root := Root(e)
	root.SetArgs(args)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	err := root.Execute()
	if err == nil && e.IsIncomplete.Load() {
		return statusIncomplete
	}
	if err == nil {
		return 0
	}
	status := 1
	var own *statusError
	if errors.As(err, &own) {
		status = own.status
	}
	if !errors.Is(err, errReported) {
		view.Report(e, err)
	}
	return status
}

// Root returns the root command without running it, for example to generate manual pages. Main runs it.
func Root(env *process.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Show and change which manager owns which field of Kubernetes objects",
		Long: `Tenure shows which manager owns which field of Kubernetes objects, shows what an
apply would do, reports conflicts with the ways out of them, and moves ownership
without losing fields.

Commands act on the cluster that kubectl uses. With --store FILE they act on a store
instead: a file with the objects of an API server that runs in this process. With
--live FILE they act on the objects in FILE, and print the result. The commands
apply and replace act only on stores and files; delete acts only on stores. In a
cluster, use plan --apply, kubectl replace and kubectl delete instead.

Exit status: 0 on success, 1 on a conflict or any error, 4 if some objects could not
be read (stderr names them). Some commands, such as plan, conflicts and watch, use
other statuses; see their help.`,
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
		newBlame(env), newExtract(env), newWatch(env), newReport(env), newUI(env))
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

// pluginPrefix is the prefix of kubectl plugins' names: for kubectl tenure, kubectl runs kubectl-tenure.
const pluginPrefix = "kubectl-"

// pluginName returns what users type to run a plugin: kubectl tenure.
func pluginName(program string) (name string, ok bool) {
	own, ok := strings.CutPrefix(strings.TrimSuffix(program, ".exe"), pluginPrefix)
	return "kubectl " + own, ok
}

// programName returns the name of the program in suggested commands.
func programName(env *process.Env) string {
	if name, ok := pluginName(env.Name); ok {
		return name
	}
	return "tenure"
}

// useProgramName puts the name with which the program was called into the help texts.
func useProgramName(root *cobra.Command, program string) {
	name, ok := pluginName(program)
	if !ok {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		// The trailing space keeps the file name tenure.db as it is.
		cmd.Long = strings.ReplaceAll(cmd.Long, "see tenure ", "see "+name+" ")
		cmd.Example = strings.ReplaceAll(cmd.Example, "  tenure ", "  "+name+" ")
		cmd.Example = strings.ReplaceAll(cmd.Example, "| tenure ", "| "+name+" ")
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

var colorChoices = []string{"auto", "always", "never"}

// addColor adds the flag --color to all commands.
func addColor(env *process.Env, root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.String("color", "auto", "when to print colors: `WHEN` is auto, always or never")
	completeChoices(env, root, "color", colorChoices...)
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if env.Color != "" && !slices.Contains(colorChoices, env.Color) {
			return fmt.Errorf("--color: expected one of %s, got %q", strings.Join(colorChoices, ", "), env.Color)
		}
		return nil
	}
}

// colorOf returns the value of --color among arguments. It does not wait for the flags to be parsed, because the
// streams are wrapped before that.
func colorOf(args []string) (when string) {
	for i, arg := range args {
		switch value, ok := strings.CutPrefix(arg, "--color="); {
		case arg == "--":
			return when
		case ok:
			when = value
		case arg == "--color" && i+1 < len(args):
			when = args[i+1]
		}
	}
	return when
}

// addVerbosity adds kubectl's flag for client-go's log, which contains requests from level 6 on, and their bodies from
// level 8 on.
func addVerbosity(env *process.Env, cmd *cobra.Command) {
	cmd.Flags().VarP(verbosity{env}, "v", "v",
		"log `LEVEL`, as in kubectl: 6 and higher log requests, 8 and higher also their bodies, with values of Secrets")
}

// verbosity is the value of the flag -v.
type verbosity struct{ env *process.Env }

func (verbosity) String() string { return "0" }
func (verbosity) Type() string   { return "level" }

func (v verbosity) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 8); err != nil {
		return fmt.Errorf("expected a level such as 6, got %q", text)
	}
	log := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(log)
	klog.ClearLogger()
	klog.LogToStderr(false)
	klog.SetOutput(v.env.Stderr)
	return log.Set("v", text)
}

// release is the version in the binaries of a release. The linker sets it (-X), because the go command records no
// version for a build in a workspace.
var release string

func newVersion(env *process.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of tenure",
		Long:    "Version prints the version of tenure, and the version of Go that built it.",
		Example: "  tenure version",
		Args:    cobra.NoArgs,
		Run:     func(*cobra.Command, []string) { fmt.Fprintf(env.Stdout, "tenure %s\n", version()) },
	}
}

// version returns the versions of tenure and of Go.
func version() string {
	version, built := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, built = info.Main.Version, info.GoVersion
	}
	switch {
	case release != "":
		version = release
	case version == "":
		version = "(devel)"
	}
	return version + " (" + built + ")"
}
