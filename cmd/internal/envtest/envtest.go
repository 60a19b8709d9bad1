// Package envtest has the programs that controller-runtime's envtest starts: kube-apiserver,
// and an etcd that stores nothing, because kube-apiserver keeps its objects in memory. It also
// creates the folder in which envtest looks for them. What is in there are links to the tenure
// command, which runs as the program whose name it is called by.
package envtest

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// Program returns the program that tenure is under a name, or nil for tenure itself.
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

// noKubectl is the kubectl of the folder if none is in PATH: it says so, and fails.
func noKubectl(env *process.Env, _ []string) int {
	fmt.Fprintln(env.Stderr, `kubectl: none was on the PATH of "tenure envtest"; install it and run that again, `+
		`or set TEST_ASSET_KUBECTL to its path`)
	return 1
}

// parse parses the flags of a program. Flags that it does not know are accepted, with a
// warning if warns is true. done is true if the program ends here, after --help or an error.
func parse(env *process.Env, set *pflag.FlagSet, args []string, warns bool, help string) (done bool, status int) {
	for _, name := range unknownFlags(set, args) {
		if warns {
			warn(env.Stderr, set.Name(), "flag %s has no effect", name)
		}
	}
	set.SetOutput(io.Discard)
	set.ParseErrorsAllowlist.UnknownFlags = true
	err := set.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(env.Stdout, help+"Flags:\n"+set.FlagUsages())
		return true, 0
	case err != nil:
		fmt.Fprintf(env.Stderr, "%s: %v\n", set.Name(), err)
		return true, 1
	}
	return false, 0
}

// unknownFlags returns the names of flags in args that a set does not have.
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
