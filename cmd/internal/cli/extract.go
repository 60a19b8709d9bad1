package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
)

func newExtract(env *process.Env) *cobra.Command {
	var flags objectFlags
	var of keyFlags
	var format string
	var fields []string
	cmd := &cobra.Command{
		Use:   "extract KIND[/NAME] [NAME…] | -f FILE | --live FILE --manager NAME",
		Short: "Print a manifest with the fields that a manager owns",
		Long: `Extract prints a manifest with the fields that a manager owns and their live values,
without fields of the server or of other managers. If the manager applies this
manifest, it owns the same fields as before. Use extract if the manifest is lost, or
if fields were moved to a new manager.

Objects are chosen as for blame, see tenure blame --help. Objects in which the
manager owns nothing are omitted; naming such an object is an error.

Exit status: 0 on success, 1 if the manager owns nothing, or on any error.`,
		Example: `  tenure extract deployment/web -n shop --manager flux > web.yaml
  tenure extract deployments -A --manager helm --manager-operation Update`,
		RunE: func(_ *cobra.Command, args []string) error {
			return flags.withObjects(args, func(p place.Place, targets []*place.Target, missing error) error {
				printed := 0
				for _, t := range targets {
					manifest, err := extracted(env, t.Stored(), of.key, fields)
					switch {
					case errors.Is(err, errNothing) && !t.Asked:
					case err != nil:
						missing = errors.Join(missing, fmt.Errorf("%s: %w", t.Title(), err))
					default:
						missing = errors.Join(missing, view.EncodeNext(env.Stdout, format, manifest, printed))
						printed++
					}
				}
				if printed == 0 && missing == nil {
					missing = fmt.Errorf("manager %q owns nothing in %s", of.key.Manager, p)
				}
				return missing
			})
		},
	}
	flags.add(env, cmd)
	of.add(env, cmd, "manager", "that owns the fields")
	cmd.Flags().StringArrayVar(&fields, "field", nil,
		"only the field at `PATH`, and all fields in it; may be given several times")
	addFormat(env, cmd, &format, "yaml", "json")
	flags.completeOwners()
	return cmd
}

// extracted returns a manifest with the fields that a manager owns in an object: the named ones; all if none are
// named.
func extracted(env *process.Env, t *place.Target, key managedfields.Key, fields []string) (map[string]any, error) {
	owned, found, err := ownedBy(t, key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%w: manager %q has no such entry", errNothing, key.Manager)
	}
	if len(fields) > 0 {
		chosen, err := namedFields(fields, owned)
		if err != nil {
			return nil, err
		}
		owned = owned.AtOrBelow(chosen)
	}
	m, err := t.Manager(env.Now, "")
	if err != nil {
		return nil, err
	}
	intent, err := m.Extract(env.Context, place.Wrap(t.Object), owned)
	if err != nil {
		return nil, err
	}
	return intent.Object, nil
}
