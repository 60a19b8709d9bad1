package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func newTransfer(env *process.Env) *cobra.Command {
	var flags moveFlags
	var from, to keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "transfer KIND[/NAME] [NAME…] | --live FILE --from NAME --to NAME",
		Short: "Move fields from one manager to another",
		Long: `Transfer moves the ownership of some or all fields from one manager to another. The
new manager has to add the fields to its manifest, and the old one has to remove
them from its own.

--from alone selects all entries of that manager. --to is an applier, unless
--to-operation is Update. Its entry is that of the main resource, also for replicas
that kubectl scale set, unless it applies through their subresource only; status
stays status. --to-subresource names another one, or none as ''.
` + moveHelp,
		Example: `  # bob applies the replicas from now on
  tenure transfer deployment/web --from alice --to bob --field .spec.replicas

  # move everything that helm owns to Argo CD, in all namespaces; look first
  tenure transfer deployments -A --from helm --to argocd --all --dry-run

  # a field of a list item, of an object in a file
  tenure transfer --live live.yaml --from alice --to bob \
    --field '.spec.template.spec.containers[name=web].image'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := fields.sourceKey(&from)
			if err != nil {
				return err
			}
			target, err := to.targetKey(cmd)
			if err == nil {
				err = to.checkVersion(managedfields.Update)
			}
			if err == nil {
				err = from.checkVersion("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			owned := func(t *place.Target) (*fieldpath.Set, error) { return fields.ownedFields(t, source) }
			return flags.moveFields(env, cmd, args, "transferred", owned, func(set *fieldpath.Set) ownership.Move {
				return ownership.Transfer{Fields: set, All: fields.all, From: source, To: target}
			})
		},
	}
	flags.add(env, cmd)
	from.add(env, cmd, "from", "that owns them now")
	from.addVersion(cmd)
	to.add(env, cmd, "to", "that owns them then")
	to.addVersion(cmd)
	fields.add(cmd)
	flags.completeOwners(env, cmd)
	return cmd
}
