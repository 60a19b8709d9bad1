package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// commandLine returns a command with arguments, for a shell. A token is not printed: its place is.
func commandLine(env *process.Env, args []string) string {
	return programName(env) + shellArguments(args)
}

func shellArguments(args []string) (text string) {
	for i, arg := range args {
		switch {
		case i > 0 && args[i-1] == "--token":
			arg = "TOKEN"
		case strings.HasPrefix(arg, "--token="):
			arg = "--token=TOKEN"
		}
		text += " " + printable.ShellQuoted(arg)
	}
	return text
}

// suggest returns the command line of another command that acts where this one does: it gets all flags that choose the
// place, but for the namespace. All commands that are suggested are made by it.
func (f *placeFlags) suggest(env *process.Env, cmd *cobra.Command, args ...string) string {
	known := append(clusterFlags(), "store", "live", "schema")
	given := flagsOf(cmd, func(name string) bool { return slices.Contains(known, name) })
	return commandLine(env, append(args, given...))
}

// flagsOf returns the flags of a command line that are wanted, as arguments.
func flagsOf(cmd *cobra.Command, isWanted func(name string) bool) (args []string) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case !isWanted(flag.Name):
			case flag.NoOptDefVal != "": // a value has to be in the same argument
				args = append(args, "--"+flag.Name+"="+value)
			default:
				args = append(args, "--"+flag.Name, value)
			}
		}
	})
	return args
}

// refuseCluster returns an error for a command that acts on stores and files only. It names the program and the
// arguments that do the same in a cluster; they get the flags of the command but for some.
func (f *placeFlags) refuseCluster(cmd *cobra.Command, program string, args []string, but ...string) error {
	if f.store != "" || f.live != nil {
		return nil
	}
	but = append(but, "color", "concurrency", "dry-run")
	given := flagsOf(cmd, func(name string) bool { return !slices.Contains(but, name) })
	return fmt.Errorf("%s acts on --store and --live; in a cluster, run: %s%s", cmd.Name(), program,
		shellArguments(append(args, given...)))
}

// clusterFlags returns the flags that choose a cluster, and how it is reached and as whom.
func clusterFlags() (names []string) {
	kube := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kube)
	kube.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "namespace", "cache-dir", "request-timeout", "disable-compression":
		default:
			names = append(names, flag.Name)
		}
	})
	return names
}
