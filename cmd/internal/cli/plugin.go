package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// pluginPrefix begins the names of kubectl's plugins: kubectl runs kubectl-tenure
// for kubectl tenure.
const pluginPrefix = "kubectl-"

// callBy has a command and its help speak of itself by the name that it was called
// by.
func callBy(root *cobra.Command, program string) {
	own, ok := strings.CutPrefix(strings.TrimSuffix(program, ".exe"), pluginPrefix)
	if !ok {
		return
	}
	name := "kubectl " + own
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		// Files called tenure.db have no blank behind the name.
		cmd.Long = strings.ReplaceAll(cmd.Long, "see tenure ", "see "+name+" ")
		cmd.Example = strings.ReplaceAll(cmd.Example, "  tenure ", "  "+name+" ")
		cmd.Example = strings.ReplaceAll(cmd.Example, "| tenure ", "| "+name+" ")
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
