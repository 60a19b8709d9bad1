package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/managedfields"
)

func newDrop(env *process.Env) *cobra.Command {
	var flags moveFlags
	var from keyFlags
	cmd := &cobra.Command{
		Use:   "drop KIND[/NAME] [NAME…] | --live FILE --from NAME",
		Short: "Remove all ownership of a manager that is gone",
		Long: `Drop removes the entries of a manager. Its fields stay in the object; if no other
manager owns them, nobody does.
` + moveHelp,
		Example: `  tenure drop deployment/web -n shop --from old-controller
  tenure drop deployments,services -A --from old-controller --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			gone, err := from.managerKey()
			if err == nil {
				err = from.checkVersion("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			return flags.moveObjects(env, cmd, args, "dropped", func(t *place.Target) (moveResult, error) {
				if _, err := (&chosenFields{all: true}).ownedFields(t, gone); err != nil {
					return moveResult{}, err
				}
				return makeMoves(env, t, ownership.Drop{From: gone})
			})
		},
	}
	flags.add(env, cmd)
	from.add(env, cmd, "from", "that is gone")
	from.addVersion(cmd)
	flags.completeOwners(env, cmd)
	return cmd
}
