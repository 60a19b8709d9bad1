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
		Use:   "transfer KIND[/NAME] [NAME…] | -f FILE|- --from NAME --to NAME",
		Short: "Move fields from one manager to another",
		Long: `Transfer moves the ownership of fields, or of all fields, from one manager to
another. Who applies the fields from now on has to have them in the manifest, and
who applied them so far has to take them out.

--from alone stands for all entries of that name; --to for an applier, unless
--to-operation says Update.
` + moveHelp,
		Example: `  # bob applies the replicas from now on
  tenure transfer deployment/web --from alice --to bob --field .spec.replicas

  # whatever helm owns is Argo CD's, in all namespaces; look first
  tenure transfer deployments -A --from helm --to argocd --all --dry-run

  # a field of a list's item, of an object in hand
  tenure transfer -f live.yaml --from alice --to bob \
    --field '.spec.template.spec.containers[name=web].image'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := fields.of(&from)
			if err != nil {
				return err
			}
			heir, err := to.read()
			if err == nil {
				err = to.ofUpdate(managedfields.Update)
			}
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			owned := func(t *place.Target) (*fieldpath.Set, error) { return fields.among(t, source) }
			return flags.runWith(env, cmd, args, "transferred", owned, func(set *fieldpath.Set) ownership.Move {
				return ownership.Transfer{Fields: set, All: fields.all, From: source, To: heir}
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "who owns them")
	from.addVersion(cmd)
	to.add(cmd, "to", "who is to own them")
	to.addVersion(cmd)
	fields.add(cmd)
	return cmd
}
