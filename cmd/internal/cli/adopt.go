package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func newAdopt(env *process.Env) *cobra.Command {
	var flags moveFlags
	var to keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "adopt KIND[/NAME] [NAME…] | --live FILE --to NAME",
		Short: "Make a manager an owner of existing fields",
		Long: `Adopt makes a manager an owner of fields that are in the object already, along with
their owners, or alone if nobody owns them. Its next apply has to contain them;
otherwise it deletes those that nobody else owns.
` + moveHelp,
		Example: `  # let argocd remove what was made by hand
  tenure adopt deployment/web -n shop --to argocd --field .spec.template

  tenure adopt --live live.yaml --to argocd --all > adopted.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := fields.sourceKey(&to)
			if err != nil {
				return err
			}
			existing := func(t *place.Target) (*fieldpath.Set, error) { return fields.existingFields(env, t) }
			return flags.moveFields(env, cmd, args, "adopted", existing, func(set *fieldpath.Set) ownership.Move {
				return ownership.Adopt{Fields: set, All: fields.all, To: manager, APIVersion: manager.APIVersion}
			})
		},
	}
	flags.add(env, cmd)
	to.add(env, cmd, "to", "that becomes an owner")
	to.addVersion(cmd)
	fields.add(cmd)
	flags.completeOwners(env, cmd)
	return cmd
}

// existingFields returns the chosen fields among those of an object; nil for all.
func (f *chosenFields) existingFields(env *process.Env, t *place.Target) (*fieldpath.Set, error) {
	if f.all {
		return nil, nil
	}
	m, err := t.Manager(env, "")
	if err != nil {
		return nil, err
	}
	known, err := m.Owned(place.Wrap(managedfields.With(t.Object, nil)))
	if err != nil {
		return nil, err
	}
	owned, _, err := ownedWhere(t, func(managedfields.Key) bool { return true })
	if err != nil {
		return nil, err
	}
	fields, err := namedFields(f.fields, known.Union(owned))
	var none *fieldError
	if errors.As(err, &none) && len(none.found) == 0 {
		return nil, fmt.Errorf("%w: it has no field %s", errNothing, none.text)
	}
	return fields, err
}
