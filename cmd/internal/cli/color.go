package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

var colorChoices = []string{"auto", "always", "never"}

// addColor adds the flag of when to print colors, to all commands.
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

// colorOf returns the value of --color in arguments: the streams are guarded before flags are parsed.
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
