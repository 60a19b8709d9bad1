package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/upgrade"
)

func newDowngrade(env *process.Env) *cobra.Command {
	var flags moveFlags
	var o upgrade.ClientSideOptions
	cmd := &cobra.Command{
		Use:   "downgrade KIND[/NAME] [NAME…] | --live FILE --field-manager NAME",
		Short: "Move back from server-side to client-side apply",
		Long: `Downgrade moves the fields of an applier back to client-side apply: the last-applied
annotation is set to what the manager owns, and the fields become those of an update
by kubectl-client-side-apply.
` + moveHelp,
		Example: `  tenure downgrade deployment/web -n shop --field-manager flux
  tenure downgrade --live live.yaml --field-manager flux > client-side.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkManager(o.Manager); err != nil {
				return err
			}
			return flags.moveObjects(env, cmd, args, "downgraded", func(t *place.Target) (moveResult, error) {
				o := o
				o.Types, o.Converter, o.Empty = t.Types, t.Converter(), kinds.Empty(t.Kind.GroupVersionKind)
				result, err := upgrade.ToClientSide(cmd.Context(), place.Wrap(t.Object), o)
				if errors.Is(err, upgrade.ErrNoApplyEntry) {
					err = fmt.Errorf("%w: %w", errNothing, err)
				}
				return upgradeResult(t, result, o.To, err)
			})
		},
	}
	flags.add(env, cmd)
	cmd.Flags().StringVar(&o.Manager, "field-manager", "", "`NAME` of the manager that applied so far")
	cmd.Flags().StringVar(&o.To, "to", upgrade.ClientSideManager, "`NAME` of the client-side manager")
	flags.completeOwners(env, cmd)
	return cmd
}
