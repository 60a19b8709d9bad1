package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/managedfields"
)

func newRename(env *process.Env) *cobra.Command {
	var flags moveFlags
	var from keyFlags
	var to string
	cmd := &cobra.Command{
		Use:   "rename KIND[/NAME] [NAME…] | --live FILE --from NAME --to NAME",
		Short: "Give a manager another name",
		Long: `Rename moves the entries of a manager to another name. If that name has an entry of
the same operation already, the two are merged.
` + moveHelp,
		Example: `  # the controller has a new name
  tenure rename deployments -A --from flux --to kustomize-controller`,
		RunE: func(cmd *cobra.Command, args []string) error {
			old, err := from.managerKey()
			if err == nil {
				err = from.checkVersion("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			if to == "" {
				return errors.New("--to: the name is missing")
			}
			return flags.moveObjects(env, cmd, args, "renamed", func(t *place.Target) (moveResult, error) {
				if _, err := (&chosenFields{all: true}).ownedFields(t, old); err != nil {
					return moveResult{}, err
				}
				return makeMoves(env, t, ownership.Rename{From: old, To: to})
			})
		},
	}
	flags.add(env, cmd)
	from.add(env, cmd, "from", "with its old name")
	from.addVersion(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the new `NAME`")
	flags.completeOwners(env, cmd)
	return cmd
}
