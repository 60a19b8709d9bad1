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
		Use:   "rename KIND[/NAME] [NAME…] | -f FILE|- --from NAME --to NAME",
		Short: "Give a manager another name",
		Long: `Rename gives the entries of a manager to another name. Where that has an entry of
the same operation already, the two become one.
` + moveHelp,
		Example: `  # the controller calls itself something else from now on
  tenure rename deployments -A --from flux --to kustomize-controller`,
		RunE: func(cmd *cobra.Command, args []string) error {
			old, err := from.read()
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			if to == "" {
				return errors.New("--to: which name?")
			}
			return flags.run(env, cmd, args, "renamed", func(t *place.Target) (moveResult, error) {
				if _, err := (&chosenFields{all: true}).among(t, old); err != nil {
					return moveResult{}, err
				}
				return do(env, t, ownership.Rename{From: old, To: to})
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "as it was called")
	from.addVersion(cmd)
	cmd.Flags().StringVar(&to, "to", "", "`NAME` from now on")
	return cmd
}
