package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// release is the version of a release, which the linker sets (-X): the go command knows none in a workspace.
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

// version returns the version of tenure, and that of Go.
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
