package cli

import (
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
	line := programName(env)
	for i, arg := range args {
		switch {
		case i > 0 && args[i-1] == "--token":
			arg = "TOKEN"
		case strings.HasPrefix(arg, "--token="):
			arg = "--token=TOKEN"
		}
		line += " " + printable.ShellQuoted(arg)
	}
	return line
}

// suggest returns the command line of another command that acts where this one does: it gets all flags that choose the
// place, but for the namespace. All commands that are suggested are made by it.
func (f *placeFlags) suggest(env *process.Env, cmd *cobra.Command, args ...string) string {
	known := append(clusterFlags(), "store", "live", "schema")
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case !slices.Contains(known, flag.Name):
			case flag.NoOptDefVal != "": // a value has to be in the same argument
				args = append(args, "--"+flag.Name+"="+value)
			default:
				args = append(args, "--"+flag.Name, value)
			}
		}
	})
	return commandLine(env, args)
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
