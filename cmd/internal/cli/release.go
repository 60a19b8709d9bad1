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
		Use:   "release KIND[/NAME] [NAME…] | -f FILE|- --from NAME",
		Short: "Give fields up: they stay, and no apply removes them",
		Long: `Release takes fields, or all, from a manager. They stay in the object. What nobody
else owns is nobody's from then on: whoever applies it owns it, without a conflict,
and no apply removes it.
` + moveHelp,
		Example: `  tenure release deployment/web --from alice --field .spec.replicas
  tenure release configmaps -A -l app=web --from kubectl-edit --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := fields.of(&from)
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			owned := func(t *place.Target) (*fieldpath.Set, error) { return fields.among(t, source) }
			return flags.runWith(env, cmd, args, "released", owned, func(set *fieldpath.Set) ownership.Move {
				return ownership.Release{Fields: set, All: fields.all, From: source}
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "who gives them up")
	from.addVersion(cmd)
	fields.add(cmd)
	return cmd
}
