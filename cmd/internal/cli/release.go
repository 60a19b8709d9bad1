package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func newRelease(env *process.Env) *cobra.Command {
	var flags moveFlags
	var from keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "release KIND[/NAME] [NAME…] | --live FILE --from NAME",
		Short: "Give up fields: they stay, and no apply removes them",
		Long: `Release removes some or all fields from the entries of a manager. The fields stay in
the object. If no other manager owns them, nobody does: a manager that applies them
owns them, without a conflict, and no apply removes them before.
` + moveHelp,
		Example: `  tenure release deployment/web --from alice --field .spec.replicas
  tenure release configmaps -A -l app=web --from kubectl-edit --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := fields.sourceKey(&from)
			if err == nil {
				err = from.checkVersion("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			owned := func(t *place.Target) (*fieldpath.Set, error) { return fields.ownedFields(t, source) }
			return flags.moveFields(env, cmd, args, "released", owned, func(set *fieldpath.Set) ownership.Move {
				return ownership.Release{Fields: set, All: fields.all, From: source}
			})
		},
	}
	flags.add(env, cmd)
	from.add(env, cmd, "from", "that gives them up")
	from.addVersion(cmd)
	fields.add(cmd)
	flags.completeOwners(env, cmd)
	return cmd
}
