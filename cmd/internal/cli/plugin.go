package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// pluginPrefix begins the names of kubectl's plugins: kubectl runs kubectl-tenure
// for kubectl tenure.
const pluginPrefix = "kubectl-"

// useProgramName sets the name of the command in its help to the name that it was called by.
func useProgramName(root *cobra.Command, program string) {
	own, ok := strings.CutPrefix(strings.TrimSuffix(program, ".exe"), pluginPrefix)
	if !ok {
		return
	}
	name := "kubectl " + own
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
