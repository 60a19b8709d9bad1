// Package envtest has the programs that controller-runtime's envtest starts: a kube-apiserver that keeps its objects in
// memory, and a placeholder for etcd that stores nothing. It also creates the folder in which envtest looks for these
// programs. The folder has links to the tenure command, which runs the program that the name of the link selects.
package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// Program returns the program that runs when tenure is called under the given name; nil for tenure itself.
func Program(name string) func(*process.Env, []string) int {
	switch strings.TrimSuffix(filepath.Base(name), ".exe") {
	case "kube-apiserver":
		return RunAPIServer
	case "etcd":
		return RunEtcd
	case "kubectl":
		return noKubectl
	}
	return nil
}

// noKubectl is run as kubectl if there is no kubectl in PATH. It prints an error, and fails.
func noKubectl(env *process.Env, _ []string) int {
	fmt.Fprintln(env.Stderr, `kubectl: "tenure envtest" found no kubectl on its PATH; install kubectl and run `+
		`"tenure envtest" again, or set TEST_ASSET_KUBECTL to the path of kubectl`)
	return 1
}

// runProgram parses the flags of a program, runs it until it is interrupted, and returns the exit status. It ignores
// unknown flags; if warns is true, it prints a warning about them.
func runProgram(
	env *process.Env, set *pflag.FlagSet, args []string, warns bool, help string, serve func(context.Context) error,
) int {
	for _, name := range unknownFlags(set, args) {
		if warns {
			warn(env.Stderr, set.Name(), "flag %s has no effect", name)
		}
	}
	set.SetOutput(io.Discard)
	set.ParseErrorsAllowlist.UnknownFlags = true
	err := set.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(env.Stdout, help+"Flags:\n"+set.FlagUsages())
		return 0
	}
	ctx, stop := signal.NotifyContext(env.Context, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = serve(ctx)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "%s: %v\n", set.Name(), err)
		return 1
	}
	return 0
}

// unknownFlags returns the names of the flags in args that set does not define.
func unknownFlags(set *pflag.FlagSet, args []string) (names []string) {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		name, ok := strings.CutPrefix(arg, "-")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if name != "" && name != "h" && name != "help" && set.Lookup(name) == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func warn(w io.Writer, program, format string, args ...any) {
	fmt.Fprintf(w, program+": warning: "+format+"\n", args...)
}

// NewCommand returns the command tenure envtest.
func NewCommand(env *process.Env) *cobra.Command {
	var dir, policyFile string
	cmd := &cobra.Command{
		Use:   "envtest",
		Short: "Make a folder with kube-apiserver, etcd and kubectl for envtest",
		Long: `Envtest makes a folder with the programs that controller-runtime's envtest starts,
and prints the path of the folder. The programs are:

  kube-apiserver   this command, which accepts the flags that envtest passes
  etcd             this command, as a placeholder for etcd, because the objects are
                   in the memory of kube-apiserver
  kubectl          the kubectl in PATH; without one, a program that prints an error

The folder is in the user's cache, unless --dir names another one. It contains
links, and stays valid until this command is moved or removed. The command replaces
only files that it made: it fails if another file has the name of a program.

With --policy, the kube-apiserver of the folder checks each write against the
permissions of a policy (see tenure policy --help). If a manager gains a field that
it may not own, the client gets a warning. The server also adds a line, with the
field's previous value and owners, to the file ownership.txt in the folder. Dry runs
and writes to subresources, such as status and scale, are not checked. A write is
checked even if a webhook rejects it later.

Exit status: 0 if the folder was made, 1 on any error.`,
		Example: `  KUBEBUILDER_ASSETS=$(tenure envtest) go test ./...

  # fail if the operator gained fields that its policy does not permit
  export KUBEBUILDER_ASSETS=$(tenure envtest --dir bin --policy policy.yaml)
  go test ./... && test ! -s bin/ownership.txt

  # a project of kubebuilder, whose Makefile asks setup-envtest for the folder
  ENVTEST_USE_ENV=1 KUBEBUILDER_ASSETS=$(tenure envtest) make test`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			folder := env.Path(dir)
			if dir == "" {
				if folder, err = DefaultFolder(binary); err != nil {
					return err
				}
			}
			if folder, err = filepath.Abs(folder); err != nil {
				return err
			}
			if policyFile != "" && dir == "" {
				return errors.New("--policy needs --dir: other test suites use the default folder, too")
			}
			if policyFile != "" {
				policyFile = env.Path(policyFile)
			}
			if err := MakeFolder(folder, binary, env.Getenv("PATH"), policyFile); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, folder)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`FOLDER` to make, instead of one in the user's cache")
	cmd.Flags().StringVar(&policyFile, "policy", "",
		"check writes against the permissions of the policy in `FILE`; needs --dir")
	return cmd
}
