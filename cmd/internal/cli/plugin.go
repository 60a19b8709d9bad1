package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// pluginPrefix begins the names of kubectl's plugins: kubectl runs kubectl-tenure
// for kubectl tenure.
const pluginPrefix = "kubectl-"

// pluginName returns how users call a plugin: kubectl tenure.
func pluginName(program string) (name string, ok bool) {
	own, ok := strings.CutPrefix(strings.TrimSuffix(program, ".exe"), pluginPrefix)
	return "kubectl " + own, ok
}

// programName returns how the command is called in the commands that it suggests.
func programName(env *process.Env) string {
	if name, ok := pluginName(env.Name); ok {
		return name
	}
	return "tenure"
}

// useProgramName sets the name of the command in its help to the name that it was called by.
func useProgramName(root *cobra.Command, program string) {
	name, ok := pluginName(program)
	if !ok {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		// The blank behind the name excludes the file tenure.db.
		cmd.Long = strings.ReplaceAll(cmd.Long, "see tenure ", "see "+name+" ")
		cmd.Example = strings.ReplaceAll(cmd.Example, "  tenure ", "  "+name+" ")
		cmd.Example = strings.ReplaceAll(cmd.Example, "| tenure ", "| "+name+" ")
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
