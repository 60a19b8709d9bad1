package cli

import (
	"flag"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// addVerbosity adds kubectl's flag for the log of client-go, which shows requests from level 6 and their bodies from
// level 8.
func addVerbosity(env *process.Env, cmd *cobra.Command) {
	cmd.Flags().VarP(verbosity{env}, "v", "v", "`LEVEL` of the log of requests, as in kubectl: 6 and more show them")
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
